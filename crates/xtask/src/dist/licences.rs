//! The licences that must accompany a binary.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::dist::package::Package;
use crate::task::Result;

/// What the files with a crate's licence begin with, in any case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// This project's licences, then each other text once with the crates that it is of.
pub(crate) fn collect(root: &Path, packages: &[Package]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut silent = Vec::new();
    for package in packages.iter().filter(|package| package.checksum.is_some()) {
        let found = texts_in(&package.folder)?;
        let name = format!("{} {}", package.name, package.version);
        if found.is_empty() {
            let licence = package.licence.as_deref().unwrap_or("no licence");
            silent.push(format!("{name}: {licence}"));
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = String::from(
        "Sottovoce is under the MIT License or the Apache License 2.0, at your choice.\n\n",
    );
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        writeln!(all, "{}\n", fs::read_to_string(root.join(file))?.trim())?;
    }
    let weights = fs::read_to_string(root.join("crates/sottovoce-encoder/data/LICENSE"))?;
    writeln!(all, "== The weights of the sentence encoder\n\n{}\n", weights.trim())?;
    let mut texts: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, of)| (of, text)).collect();
    texts.sort();
    for (of, text) in texts {
        writeln!(all, "== {}\n\n{}\n", of.join(", "), text.trim())?;
    }
    if !silent.is_empty() {
        writeln!(all, "== Without a text of their own\n\n{}\n", silent.join("\n"))?;
    }
    writeln!(all, "== Rust's standard library: MIT OR Apache-2.0; musl, within it: MIT")?;
    Ok(all)
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|start| name.starts_with(start)) && file.path().is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(file.path())?).into_owned());
        }
    }
    texts.sort();
    texts.dedup();
    Ok(texts)
}
