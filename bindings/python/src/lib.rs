//! The native half of the Python package `sottovoce`. The other half is in `python/sottovoce`.

mod answer;
mod conversation;
mod error;
mod message;
mod process;
mod prompt;
mod report;
mod runtime;
mod settings;
mod store;

use pyo3::prelude::*;

/// The classes, as `sottovoce` shows them, and what its tests compare the type stubs with.
#[pymodule]
mod _sottovoce {
    #[pymodule_export]
    use super::answer::Answer;
    #[pymodule_export]
    use super::conversation::Conversation;
    #[pymodule_export]
    use super::message::{Message, Recalled};
    #[pymodule_export]
    use super::prompt::{Prompt, Receipt, ReceiptEntry};
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::settings::setting_names;
    #[pymodule_export]
    use super::store::Store;

    use super::{PyAnyMethods, PyModuleMethods, PyResult, runtime, store};
    use pyo3::Bound;
    use pyo3::types::PyModule;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        runtime::configure();
        // A program may end in the middle of an answer without closing its store.
        let close = pyo3::wrap_pyfunction!(store::close_all, module)?;
        module.py().import("atexit")?.call_method1("register", (close,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
