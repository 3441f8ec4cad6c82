//! Settings: those of the files and the environment, overridden by keyword arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};
use sottovoce::admin::PLACEHOLDER_KEY;
use sottovoce::config::setting_names as all_names;
use sottovoce::{Config, Error};
use zeroize::Zeroizing;

use crate::error::raise;

/// Settings that give a key. A keyword argument for one of them takes the place of all that files or the environment say.
const KEYS: [&str; 5] = [
    "Context.EncryptionKey",
    "Context.KeyFile",
    "Context.Passphrase",
    "Context.KeyFd",
    "Context.KeyCredential",
];

/// systemd's folder of credentials, one of which may be a key.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// One keyword argument: its name, the setting that it stands for, and its value as a variable would have it.
struct Given {
    keyword: String,
    setting: &'static str,
    text: Zeroizing<String>,
}

/// The names of the keyword arguments of `Store` that stand for settings.
#[pyfunction]
pub(crate) fn setting_names() -> Vec<String> {
    settings().map(keyword).collect()
}

fn settings() -> impl Iterator<Item = &'static str> {
    let sections = ["Context.", "LanguageModel."];
    all_names().filter(move |name| sections.iter().any(|section| name.starts_with(section)))
}

/// `Context.Recall.MinScore` as `recall_min_score`.
fn keyword(setting: &str) -> String {
    let (_, name) = setting.split_once('.').unwrap_or_default();
    let mut keyword = String::new();
    let mut is_start = true;
    for letter in name.chars() {
        if letter.is_uppercase() && !is_start {
            keyword.push('_');
        }
        is_start = letter == '.';
        keyword.push(if is_start { '_' } else { letter.to_ascii_lowercase() });
    }
    keyword
}

/// Reads the settings: those of `file`, or of the files that the command reads, then of `os.environ`, then these
/// keyword arguments.
pub(crate) fn load(
    py: Python<'_>,
    file: Option<PathBuf>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Config> {
    let mut given = Vec::new();
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        let setting = settings().find(|setting| keyword(setting) == name).ok_or_else(|| {
            PyTypeError::new_err(format!("Store() has no keyword argument '{name}'"))
        })?;
        if !value.is_none() {
            given.push(Given { text: text(&value)?, keyword: name, setting });
        }
    }
    let has_key = given.iter().any(|given| KEYS.contains(&given.setting));
    let without = |setting: &&str| has_key && !given.iter().any(|given| given.setting == *setting);
    let replaced: Vec<&str> = KEYS.into_iter().filter(without).collect();

    let mut environment = Vec::new();
    for (name, value) in environ(py)? {
        let is_given = given.iter().any(|given| is_variable(&name, given.setting));
        let is_replaced = replaced.iter().any(|setting| is_variable(&name, setting))
            || (name == CREDENTIALS && replaced.contains(&"Context.KeyCredential"));
        if !is_given && !is_replaced {
            environment.push((name, value));
        }
    }
    for setting in replaced {
        // An empty variable means null. A secret has no null, but the placeholder stands for none.
        let none = if setting == "Context.EncryptionKey" { PLACEHOLDER_KEY } else { "" };
        environment.push((variable(setting).into(), none.into()));
    }
    for given in &given {
        environment.push((variable(given.setting).into(), given.text.as_str().into()));
    }
    Config::load_with(file.as_deref(), environment)
        .map(Config::witnessed)
        .map_err(|error| raise(in_keywords(error, &given)))
}

/// Names the keyword argument where an error names the variable in its place.
fn in_keywords(error: Error, given: &[Given]) -> Error {
    match error {
        Error::Config { place, reason } => {
            let given = given.iter().find(|given| variable(given.setting) == place);
            let place = given.map_or(place, |given| format!("the argument {}", given.keyword));
            Error::Config { place, reason }
        }
        error => error,
    }
}

fn variable(setting: &str) -> String {
    format!("SOTTOVOCE__{}", setting.to_ascii_uppercase().replace('.', "__"))
}

fn is_variable(name: &OsStr, setting: &str) -> bool {
    name.to_str().is_some_and(|name| name.eq_ignore_ascii_case(&variable(setting)))
}

/// A value as a variable would have it.
fn text(value: &Bound<'_, PyAny>) -> PyResult<Zeroizing<String>> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string().into());
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return path
            .into_os_string()
            .into_string()
            .map(Zeroizing::new)
            .map_err(|_| PyTypeError::new_err("a path in a keyword argument must be UTF-8"));
    }
    Ok(value.str()?.to_str()?.to_owned().into())
}

/// Python's own view of the environment, because no other thread can change it while this one holds Python.
fn environ(py: Python<'_>) -> PyResult<Vec<(OsString, OsString)>> {
    let all = py.import("os")?.getattr("environb")?.call_method0("copy")?;
    let pairs = all.cast_into::<PyDict>()?;
    let bytes = |value: &Bound<'_, PyAny>| -> PyResult<OsString> {
        Ok(OsString::from_vec(value.cast::<PyBytes>()?.as_bytes().to_vec()))
    };
    pairs.iter().map(|(name, value)| Ok((bytes(&name)?, bytes(&value)?))).collect()
}
