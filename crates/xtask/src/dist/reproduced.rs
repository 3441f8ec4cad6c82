//! Builds the same commit again in another folder, and compares the bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::dist::digest::sha256;
use crate::dist::edition::Edition;
use crate::dist::release::Site;
use crate::dist::target::Target;
use crate::dist::toolchain::{Toolchain, output, run};
use crate::task::Result;

/// Prints the sums of both builds of each binary. Returns whether they are the same.
pub(crate) fn check(
    site: &Site,
    toolchain: &Toolchain,
    targets: &[Target],
    editions: &[Edition],
) -> Result<bool> {
    let changed =
        output(Command::new("git").args(["status", "--porcelain"]).current_dir(&site.root))?;
    if !changed.is_empty() {
        return Err("only a commit can be built again: commit what is changed".into());
    }
    let elsewhere = site.folder.join("elsewhere");
    // Left by a run that was interrupted.
    if elsewhere.exists() {
        fs::remove_dir_all(&elsewhere)?;
    }
    let sources = elsewhere.join("sources");
    run(Command::new("git").args(["clone", "--quiet"]).arg(&site.root).arg(&sources))?;
    let mut is_same = true;
    for &edition in editions {
        for &target in targets {
            let first = sum(&toolchain.build(&site.root, &site.folder, target, edition)?)?;
            let again = toolchain.build(&sources, &elsewhere.join("built"), target, edition)?;
            let again = sum(&again)?;
            println!("{first}  {} for {}", edition.name(), target.name());
            println!("{again}  the same, built in {}", sources.display());
            is_same &= first == again;
        }
    }
    fs::remove_dir_all(&elsewhere)?;
    Ok(is_same)
}

fn sum(path: &Path) -> Result<String> {
    Ok(sha256(&fs::read(path)?))
}
