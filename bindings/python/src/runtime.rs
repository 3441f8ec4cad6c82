//! The runtime of the process, and the two ways in which Python waits for it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3_async_runtimes::tokio as bridge;
use tokio::runtime::{Builder, Runtime};

use crate::process;

/// Threads for tasks. Files have blocking threads of their own, so these only move words.
const WORKERS: usize = 2;

/// How long a blocking call may leave Ctrl-C unnoticed.
const SIGNALS: Duration = Duration::from_millis(50);

/// Says how the runtime is built. It is built on first use, so that importing the package starts no thread.
pub(crate) fn configure() {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).thread_name("sottovoce").enable_all();
    bridge::init(builder);
}

pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    process::check()?;
    Ok(bridge::get_runtime())
}

/// Waits for `work` without holding up other Python threads. A signal handler that raises, as Ctrl-C's does, drops it.
pub(crate) fn block<T: Send>(
    py: Python<'_>,
    work: impl Future<Output = PyResult<T>> + Send,
) -> PyResult<T> {
    let runtime = runtime()?;
    py.detach(|| {
        runtime.block_on(async {
            let mut work = pin!(work);
            loop {
                match tokio::time::timeout(SIGNALS, &mut work).await {
                    Ok(done) => return done,
                    Err(_) => Python::attach(|py| py.check_signals())?,
                }
            }
        })
    })
}

/// An awaitable for `work`. Cancelling the awaiting task drops it.
pub(crate) fn awaitable<T>(
    py: Python<'_>,
    work: impl Future<Output = PyResult<T>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>>
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    process::check()?;
    bridge::future_into_py(py, work)
}
