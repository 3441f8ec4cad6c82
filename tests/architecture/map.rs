//! The map of files in ARCHITECTURE.md, made of the first sentence of each file. `UPDATE_MAP=1 cargo test --test architecture`
//! writes it anew.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::graph::files;

const BEGIN: &str =
    "<!-- map: made by `UPDATE_MAP=1 cargo test --test architecture` -->\n```text\n";
const END: &str = "```\n<!-- end of map -->";

/// The first sentence of a file's documentation.
fn summary(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let words = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = words.find(". ").map_or(words.trim_end_matches('.').len(), |at| at);
    words[..end].to_owned()
}

fn map(root: &Path, sources: &[PathBuf], others: &[&str]) -> String {
    let mut map = String::new();
    for src in sources {
        let paths = files(src, others);
        writeln!(map, "{}/", src.strip_prefix(root).unwrap().display()).unwrap();
        // A folder's own file precedes the folder's files.
        let mut paths: Vec<_> =
            paths.into_iter().map(|path| (path.with_extension(""), path)).collect();
        paths.sort();
        for (module, path) in paths {
            let below = module.strip_prefix(src).unwrap();
            let depth = below.components().count();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = format!("{}{name}", "  ".repeat(depth));
            writeln!(map, "{name:<30} {}", summary(&path)).unwrap();
        }
    }
    map
}

pub(crate) fn check(root: &Path, sources: &[PathBuf], others: &[&str]) {
    let file = root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    let map = map(root, sources, others);
    if std::env::var_os("UPDATE_MAP").is_some() {
        fs::write(&file, format!("{before}{BEGIN}{map}{END}{after}")).unwrap();
        return;
    }
    let differs = map.lines().find(|line| !there.lines().any(|known| known == *line));
    assert!(
        map == there,
        "the map in ARCHITECTURE.md is not that of the files (such as {differs:?}): \
         UPDATE_MAP=1 cargo test --test architecture"
    );
}
