//! A whole release, which the script `packaging/release` makes.

use std::process::Command;

use crate::task::Result;

/// Runs the script with these options. Returns whether it made the release.
pub(crate) fn run(options: &[&str]) -> Result<bool> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/release");
    Ok(Command::new(script).args(options).status()?.success())
}
