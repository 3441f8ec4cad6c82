//! Architecture rules that the compiler does not check: which module may use which, and the sizes of files and
//! folders.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, clippy::panic)]

mod graph;
mod map;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use graph::{Graph, Module, circles, code, files, module_of};

/// Every module with its allowed imports. Values move down this list, never up.
const MODULES: [(&str, &[&str]); 15] = [
    ("error", &[]),
    ("clock", &[]),
    ("message", &["error"]),
    ("scope", &["error"]),
    ("directory", &["error"]),
    ("crypto", &["error", "directory"]),
    ("store", &["error", "clock", "message", "scope", "directory", "crypto"]),
    ("testing", &["error", "clock", "message", "scope", "store"]),
    ("transfer", &["error", "message", "scope", "directory", "crypto", "store"]),
    ("persona", &["error", "clock", "scope", "directory", "store", "transfer"]),
    ("context", &["error", "message", "scope", "store"]),
    ("prompt", &["error", "message", "store", "context"]),
    ("model", &["error", "message", "context", "prompt"]),
    ("conversation", &["error", "clock", "message", "store", "context", "prompt", "model"]),
    (
        "config",
        &[
            "error",
            "clock",
            "message",
            "scope",
            "crypto",
            "store",
            "persona",
            "context",
            "model",
            "conversation",
        ],
    ),
];

/// The folders of the store, from the bottom up. Each uses only those before it.
const STORE: [&str; 17] = [
    "record",
    "keyring",
    "folder",
    "pack",
    "settings",
    "read",
    "commit",
    "artifact",
    "snapshot",
    "delete",
    "backend",
    "compact",
    "check",
    "repair",
    "write",
    "file_store",
    "admin",
];

/// The folders of a conversation, in the same way.
const CONVERSATION: [&str; 7] =
    ["search", "metrics", "model_binding", "summary", "memory", "turn", "builder"];

/// Files that only tests compile, besides those in folders called `tests`.
const TEST_MODULES: [&str; 2] = ["directory/contract.rs", "fuzzing.rs"];

/// The most lines of code in a file.
const LINES_PER_FILE: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn src() -> PathBuf {
    root().join("src")
}

/// The `src` folders of the library and the other crates.
fn crates() -> Vec<PathBuf> {
    let beside = std::fs::read_dir(root().join("crates")).unwrap();
    let mut beside: Vec<PathBuf> = beside.map(|entry| entry.unwrap().path().join("src")).collect();
    beside.retain(|src| src.is_dir());
    beside.sort();
    std::iter::once(src()).chain(beside).collect()
}

fn sources(src: &Path) -> Vec<PathBuf> {
    files(src, &TEST_MODULES)
}

fn graph(src: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    Graph::read(src, &TEST_MODULES).edges()
}

/// The top modules that each top module uses.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources(&src()) {
        let Some(module) = module_of(&src(), &path).first().cloned() else { continue };
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
fn no_room_uses_one_above_it() {
    let edges = graph(&src());
    for (module, rooms) in [("store", &STORE[..]), ("conversation", &CONVERSATION[..])] {
        let level = |path: &Module| {
            let room = path.get(1).filter(|_| path[0] == module)?;
            Some(rooms.iter().position(|name| name == room).unwrap_or_else(|| {
                panic!("{module}/{room} is not in the list of rooms");
            }))
        };
        let mut wrong = Vec::new();
        for (from, used) in &edges {
            for to in used {
                if let (Some(from_level), Some(to_level)) = (level(from), level(to))
                    && to_level > from_level
                {
                    wrong.push(format!("{} uses {}", from.join("/"), to.join("/")));
                }
            }
        }
        assert!(wrong.is_empty(), "against the order of rooms:\n{}", wrong.join("\n"));
    }
}

#[test]
fn no_circle_has_more_than_two_files() {
    let beside = [
        "sottovoce-net",
        "sottovoce-team-server",
        "sottovoce-import",
        "sottovoce-page",
        "sottovoce-serve",
        "sottovoce-sync",
    ];
    let beside = beside.map(|name| root().join("crates").join(name).join("src"));
    for src in [src()].into_iter().chain(beside) {
        let found = circles(&graph(&src));
        let large: Vec<String> = found
            .iter()
            .filter(|circle| circle.len() > 2)
            .map(|circle| {
                circle.iter().map(|module| module.join("/")).collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert!(large.is_empty(), "circles in {}:\n{}", src.display(), large.join("\n"));
    }
}

#[test]
fn only_the_directory_module_touches_files_and_only_the_clock_asks_the_time() {
    let readers = src().join("../crates/sottovoce-import/src");
    // The configuration is not conversation data: it is read before any store is known.
    let of_readers: &[&str] = &["source", "sink.rs", "sqlite/scratch.rs"];
    for (folder, may_touch) in [(src(), &["directory", "config"] as &[&str]), (readers, of_readers)]
    {
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
    for src in crates() {
        for path in sources(&src) {
            assert!(!path.ends_with("mod.rs"), "{}", path.display());
            let lines = code(&path).lines().count();
            assert!(lines <= LINES_PER_FILE, "{} has {lines} lines of code", path.display());
        }
    }
}

#[test]
fn architecture_md_has_the_map_of_files() {
    map::check(root(), &crates(), &TEST_MODULES);
}
