//! The store: settings, keys and open conversations.

mod open;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversation::Conversation;
use crate::error::raise;
use crate::process::{self, OfProcess};
use crate::runtime::{awaitable, block, runtime, settle};
use crate::settings;
pub(crate) use open::OpenStore;

/// The stores that the end of the program closes.
static STORES: Mutex<Vec<Weak<OpenStore>>> = Mutex::new(Vec::new());

/// Closes what is still open when the program ends.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    // A forked process has nothing to close.
    if process::check().is_err() {
        return Ok(());
    }
    let stores = std::mem::take(&mut *STORES.lock().unwrap_or_else(PoisonError::into_inner));
    let mut outcome = Ok(());
    for store in stores.iter().filter_map(Weak::upgrade) {
        let closed = block(py, store.close());
        outcome = outcome.and(closed);
    }
    outcome.and(settle(py))
}

/// An encrypted store of conversations.
///
/// Without arguments it is the store of the command `sottovoce`, as `appsettings.json` and the environment say. Every
/// setting of the sections `Context` and `LanguageModel` is a keyword argument too, in lower case with underscores,
/// such as `storage_root`, `key_file`, `passphrase`, `base_url`, `model` or `last_n`. `None` leaves a setting as it is,
/// an empty text means null. `config` names a settings file to read instead of the usual ones.
///
/// On first use it makes the key, or raises `NoKeyError` if `create` is false. It logs where the key is: without a copy
/// of it, nobody can read a store after a disk fails.
///
/// Opening takes milliseconds, with a passphrase some tenths of a second. Several threads, tasks and processes may use one
/// store. `with` and `async with` close it.
///
///     >>> with Store(storage_root=folder / "store", key_file=folder / "key") as store:
///     ...     message = store.conversation("named/kitchen").append("user", "Tea at four.")
///     ...     store.scopes()
///     ['named/kitchen']
#[pyclass(frozen, weakref, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Store(OfProcess<Arc<OpenStore>>);

impl Store {
    fn open(&self) -> PyResult<&Arc<OpenStore>> {
        self.0.get()
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (*, config = None, create = true, **settings))]
    fn new(
        py: Python<'_>,
        config: Option<PathBuf>,
        create: bool,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        // Before anything else, so that a forked process is told why it cannot go on.
        runtime()?;
        let config = settings::load(py, config, settings)?;
        let keys = py.detach(|| open::keys(&config, create)).map_err(raise)?;
        for note in keys.notes.iter().chain(&open::left_out(&config)) {
            let logger = py.import("logging")?.call_method1("getLogger", ("sottovoce",))?;
            logger.call_method1("warning", ("%s", note))?;
        }
        let store = OpenStore::new(config, keys.keys).map_err(raise)?;
        block(py, store.check())?;
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(&store));
        drop(stores);
        Ok(Self(OfProcess::new(store)))
    }

    /// The store's folder.
    #[getter]
    fn folder(&self) -> PyResult<PathBuf> {
        self.open()?.config.storage_root().map_err(raise)
    }

    /// The key file, if the key is in one.
    #[getter]
    fn key_file(&self) -> PyResult<Option<PathBuf>> {
        open::key_file(&self.open()?.config).map_err(raise)
    }

    /// Opens a conversation: `default`, `dm/ann`, `named/kitchen` or `guild/1/2/42`, and a thread of it. All callers
    /// share one conversation, so that their turns wait for each other.
    ///
    ///     >>> store.conversation("dm/ann").scope
    ///     'dm/ann'
    #[pyo3(signature = (scope = "default", *, thread = None))]
    fn conversation(
        &self,
        py: Python<'_>,
        scope: &str,
        thread: Option<String>,
    ) -> PyResult<Conversation> {
        let store = self.open()?;
        block(py, store.conversation(scope.parse().map_err(raise)?, thread))
    }

    /// `conversation` for asyncio.
    #[pyo3(signature = (scope = "default", *, thread = None))]
    fn conversation_async<'py>(
        &self,
        py: Python<'py>,
        scope: &str,
        thread: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (store, scope) = (Arc::clone(self.open()?), scope.parse().map_err(raise)?);
        awaitable(py, async move { store.conversation(scope, thread).await })
    }

    /// The conversations in which something was stored.
    fn scopes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        block(py, self.open()?.scopes())
    }

    /// `scopes` for asyncio.
    fn scopes_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let store = Arc::clone(self.open()?);
        awaitable(py, async move { store.scopes().await })
    }

    /// Interrupts the answers in progress, and stores what was spoken of them. Later calls raise `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        block(py, self.open()?.close())
    }

    /// `close` for asyncio.
    fn close_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let store = Arc::clone(self.open()?);
        awaitable(py, async move { store.close().await })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        awaitable(py, async move { Ok(slf) })
    }

    #[pyo3(signature = (*_raised))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        _raised: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.close_async(py)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<Store {}>", self.folder()?.display()))
    }
}
