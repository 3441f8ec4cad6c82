//! Architecture rules that the compiler does not check: which module may use which, how large files may be, and what libraries
//! may say.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, clippy::panic)]

mod graph;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use graph::{Graph, Module, circles, code, files, module_of};

/// Every module with its allowed imports. Values move down this list, never up.
const MODULES: [(&str, &[&str]); 16] = [
    ("debug_shows", &[]),
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

/// The rooms of the store, from the bottom up, and the file store that stands on them. Each uses only those before it.
const STORE: [&str; 7] = ["record", "folder", "read", "rules", "write", "file_store", "care"];

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

/// The `src` folders of the library, the other crates and the Python package.
fn crates() -> Vec<PathBuf> {
    let beside = std::fs::read_dir(root().join("crates")).unwrap();
    let mut beside: Vec<PathBuf> = beside.map(|entry| entry.unwrap().path().join("src")).collect();
    beside.retain(|src| src.is_dir());
    beside.sort();
    beside.push(root().join("bindings/python/src"));
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

/// What the files below a file use of it, and it of them, counts as a circle, except where a file of commands runs those below it.
const DISPATCHING: [&str; 3] =
    ["crates/sottovoce-cli/src", "crates/sottovoce-mcp/src", "bindings/python/src"];

/// Crates with a larger circle, and how many files it has. None is to join them, and none of them is to grow.
const LARGER: [(&str, usize); 2] = [("crates/sottovoce-mcp/src", 5), ("bindings/python/src", 4)];

#[test]
fn no_circle_has_more_than_two_files() {
    let mut large = Vec::new();
    for src in crates() {
        let mut edges = graph(&src);
        if DISPATCHING.iter().any(|name| src.ends_with(name)) {
            for (from, used) in &mut edges {
                used.retain(|to| !to.starts_with(from));
            }
        }
        let most = LARGER.iter().find(|(name, _)| src.ends_with(name)).map_or(2, |(_, most)| *most);
        for circle in circles(&edges).iter().filter(|circle| circle.len() > most) {
            let uses = circle.iter().flat_map(|from| edges[from].iter().map(move |to| (from, to)));
            let uses = uses.filter(|(_, to)| circle.contains(*to));
            let uses: Vec<String> = uses
                .map(|(from, to)| format!("{} uses {}", from.join("/"), to.join("/")))
                .collect();
            large.push(format!("{}:\n{}", src.display(), uses.join("\n")));
        }
    }
    assert!(large.is_empty(), "circles of files in {}", large.join("\n"));
}

#[test]
fn only_the_directory_module_touches_files_and_only_the_clock_asks_the_time() {
    let readers = src().join("../crates/sottovoce-import/src");
    // The configuration is not conversation data: it is read before any store is known.
    let of_readers: &[&str] = &["source", "sink.rs"];
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
    for path in crates().iter().flat_map(|src| sources(src)) {
        assert!(!path.ends_with("mod.rs"), "{}", path.display());
        let lines = code(&path).lines().count();
        assert!(lines <= LINES_PER_FILE, "{} has {lines} lines of code", path.display());
    }
}

/// The front-end that has the command says how to use it. Other front-ends have none.
#[test]
fn no_library_names_a_command_of_the_command_line() {
    for src in crates() {
        if src.ends_with("sottovoce-cli/src") || src.ends_with("xtask/src") {
            continue;
        }
        for path in sources(&src) {
            assert!(!code(&path).contains("`sottovoce "), "{}", path.display());
        }
    }
}

#[test]
fn what_is_mutated_exists() {
    let listed = std::fs::read_to_string(root().join(".cargo/mutants.toml")).unwrap();
    let globs: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .collect();
    assert!(!globs.is_empty(), "{listed}");
    for glob in globs {
        assert!(root().join(glob.trim_end_matches("/**")).exists(), "{glob} matches nothing");
    }
}
