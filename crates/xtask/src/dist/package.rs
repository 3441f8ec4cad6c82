//! The crates that a binary is built from.
#![expect(
    clippy::indexing_slicing,
    reason = "an index of a JSON value finds or inserts, and does not panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::dist::edition::Edition;
use crate::dist::target::Target;
use crate::dist::toolchain;
use crate::task::Result;

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) folder: PathBuf,
    /// The SHA-256 sum of what the registry serves; none for this project's own crates.
    pub(crate) checksum: Option<String>,
    /// The names and versions of those that it uses.
    pub(crate) uses: BTreeSet<(String, String)>,
}

impl Package {
    /// Every crate in the binary, sorted by name and version. What only runs at build time is not among them.
    pub(crate) fn all(root: &Path, target: Target, edition: Edition) -> Result<Vec<Self>> {
        let mut cargo = Command::new("cargo");
        cargo.args(["tree", "--locked", "-p", "sottovoce-cli", "--edges", "normal,no-proc-macro"]);
        cargo.args(["--prefix", "depth", "--format", " {p}", "--target", target.triple()]);
        let tree = toolchain::output(cargo.args(edition.features()).current_dir(root))?;
        let uses = graph(&tree)?;

        let mut cargo = Command::new("cargo");
        cargo
            .args(["metadata", "--locked", "--all-features", "--format-version", "1"])
            .current_dir(root);
        let metadata: Value = serde_json::from_str(&toolchain::output(&mut cargo)?)?;
        let checksums = checksums(&std::fs::read_to_string(root.join("Cargo.lock"))?);
        let mut packages = Vec::new();
        for (id, uses) in uses {
            let known = metadata["packages"].as_array().into_iter().flatten();
            let described = known
                .filter(|package| package["name"] == id.0.as_str())
                .find(|package| package["version"] == id.1.as_str())
                .ok_or_else(|| format!("cargo metadata lacks {} {}", id.0, id.1))?;
            let manifest = Path::new(described["manifest_path"].as_str().unwrap_or_default());
            packages.push(Self {
                licence: described["license"].as_str().map(str::to_owned),
                folder: manifest.parent().unwrap_or(root).to_owned(),
                checksum: checksums.get(&id).cloned(),
                name: id.0,
                version: id.1,
                uses,
            });
        }
        Ok(packages)
    }
}

type Id = (String, String);

/// Reads lines such as `2 serde v1.0.0`, where the number is the depth. A crate that was listed before is listed without
/// those that it uses.
fn graph(tree: &str) -> Result<BTreeMap<Id, BTreeSet<Id>>> {
    let mut uses: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let wrong = || format!("cargo tree printed what is not understood: {line}");
        let mut words = line.split(' ');
        let depth: usize = words.next().ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
        let name = words.next().ok_or_else(wrong)?.to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v')).ok_or_else(wrong)?;
        let id = (name, version.to_owned());
        above.truncate(depth);
        if let Some(user) = above.last() {
            uses.entry(user.clone()).or_default().insert(id.clone());
        }
        uses.entry(id.clone()).or_default();
        above.push(id);
    }
    Ok(uses)
}

/// The checksums in a `Cargo.lock`, which Cargo always writes in this order and form.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let blocks = lock.split("[[package]]");
    let checksum = |block| {
        Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?))
    };
    blocks.filter_map(checksum).collect()
}
