//! The runtime of the process, and the two ways in which Python waits for it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3_async_runtimes::{TaskLocals, generic, tokio as bridge};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

use crate::process;

/// Threads for tasks. Files have blocking threads of their own, so these only move words.
const WORKERS: usize = 2;

/// How long a blocking call may leave Ctrl-C unnoticed.
const SIGNALS: Duration = Duration::from_millis(50);

/// How long the end of the interpreter waits for what gives results to event loops.
const PATIENCE: Duration = Duration::from_secs(2);

/// Everything that gives results to event loops. A thread of it that comes to Python while the interpreter ends would crash.
static RESULTS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

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
    generic::future_into_py::<Tracked, _, T>(py, work)
}

/// Waits until no other thread of the package comes to Python any more. For the end of the interpreter.
pub(crate) fn settle(py: Python<'_>) -> PyResult<()> {
    if RESULTS.is_empty() {
        return Ok(());
    }
    RESULTS.close();
    block(py, async {
        // What is still at work then waits for something outside.
        let _ = tokio::time::timeout(PATIENCE, RESULTS.wait()).await;
        Ok(())
    })
}

/// The runtime as awaitables use it, which tracks their tasks.
struct Tracked;

impl generic::Runtime for Tracked {
    type JoinError = JoinError;
    type JoinHandle = JoinHandle<()>;

    fn spawn<F: Future<Output = ()> + Send + 'static>(task: F) -> JoinHandle<()> {
        RESULTS.spawn_on(task, bridge::get_runtime().handle())
    }

    fn spawn_blocking<F: FnOnce() + Send + 'static>(task: F) -> JoinHandle<()> {
        RESULTS.spawn_blocking_on(task, bridge::get_runtime().handle())
    }
}

impl generic::ContextExt for Tracked {
    fn scope<F, R>(_: TaskLocals, work: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(work)
    }

    // No work here awaits anything of Python's.
    fn get_task_locals() -> Option<TaskLocals> {
        None
    }
}
