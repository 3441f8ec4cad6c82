//! The house rules that the compiler does not keep: which module may know which, and how large a file may grow.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every module and what it may import. Values move down this list, never up.
const MODULES: [(&str, &[&str]); 18] = [
    ("error", &[]),
    ("clock", &[]),
    ("message", &["error"]),
    ("scope", &["error"]),
    ("crypto", &["error"]),
    ("blob", &["error"]),
    ("redact", &["error", "message"]),
    ("key_file", &["error", "crypto", "blob"]),
    ("character", &["error"]),
    ("store", &["error", "clock", "message", "scope", "crypto", "blob", "redact", "character"]),
    ("export", &["error", "message", "crypto", "blob", "store"]),
    ("import", &["error", "message", "scope", "crypto", "blob", "character", "store", "export"]),
    ("persona", &["error", "clock", "scope", "blob", "character", "store", "export"]),
    ("context", &["error", "message", "scope", "store"]),
    ("prompt", &["error", "message", "redact", "store", "context"]),
    ("model", &["error", "message", "context", "prompt"]),
    ("conversation", &["error", "clock", "message", "store", "context", "prompt", "model"]),
    (
        "config",
        &[
            "error",
            "clock",
            "crypto",
            "redact",
            "scope",
            "store",
            "context",
            "prompt",
            "model",
            "conversation",
            "persona",
        ],
    ),
];

/// Files of the library that only its tests compile, beside those in folders called `tests`.
const TEST_MODULES: [&str; 3] = ["blob/contract.rs", "fuzzing.rs", "store/tests.rs"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("store/tests") {
                found.extend(sources(&path));
            }
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !TEST_MODULES.iter().any(|name| path.ends_with(name))
        {
            found.push(path);
        }
    }
    found
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// A source file's text without comments and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn module_of(path: &Path) -> String {
    let below = path.strip_prefix(src()).unwrap();
    let first = below.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Which modules each module names.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources(&src()) {
        let module = module_of(&path);
        let code = code(&path);
        assert!(!code.contains("super::super"), "{} climbs", path.display());
        for rest in code.split("crate::").skip(1) {
            let other: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if other != module {
                imports.entry(module.clone()).or_default().insert(other);
            }
        }
        imports.entry(module).or_default();
    }
    imports
}

#[test]
fn no_module_imports_one_that_comes_after_it() {
    let rules = BTreeMap::from(MODULES);
    for (module, imported) in imports() {
        if module == "lib" {
            continue;
        }
        let allowed =
            rules.get(module.as_str()).unwrap_or_else(|| panic!("{module} is not in the list"));
        for other in imported {
            assert!(allowed.contains(&other.as_str()), "{module} must not import {other}");
        }
    }
}

#[test]
fn the_list_of_modules_has_no_circle_and_nothing_superfluous() {
    let real = imports();
    let order: Vec<&str> = MODULES.iter().map(|(module, _)| *module).collect();
    for (at, (module, allowed)) in MODULES.iter().enumerate() {
        for other in *allowed {
            let before = order.iter().position(|name| name == other).unwrap();
            assert!(before < at, "{module} may import {other}, which comes after it");
            assert!(real[*module].contains(*other), "{module} no longer needs {other}");
        }
    }
}

#[test]
fn only_the_blob_layer_touches_files_and_only_the_clock_asks_the_time() {
    let readers = src().join("../crates/sottovoce-import/src");
    // The configuration is no data: it is read before any store is known.
    let of_readers: &[&str] = &["source", "sink.rs", "sqlite/scratch.rs"];
    for (folder, may_touch) in [(src(), &["blob", "config"] as &[&str]), (readers, of_readers)] {
        for path in sources(&folder) {
            let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
            let code = code(&path);
            if !may_touch.iter().any(|start| name.starts_with(start)) {
                assert!(
                    !code.contains("std::fs") && !code.contains("rustix::fs"),
                    "{name} touches files"
                );
            }
            if name != "clock.rs" {
                for asks in ["SystemTime::now", "Timestamp::now", "Zoned::now", "Utc::now"] {
                    assert!(!code.contains(asks), "{name} asks the time");
                }
            }
        }
    }
}

#[test]
fn files_stay_small_and_modules_have_no_mod_rs() {
    let crates = fs::read_dir(src().join("../crates")).unwrap();
    let crates = crates.map(|folder| folder.unwrap().path().join("src"));
    for folder in crates.chain([src()]) {
        for path in sources(&folder) {
            assert!(!path.ends_with("mod.rs"), "{}", path.display());
            let lines = code(&path).lines().count();
            assert!(lines <= 400, "{} has {lines} lines of code", path.display());
        }
    }
}
