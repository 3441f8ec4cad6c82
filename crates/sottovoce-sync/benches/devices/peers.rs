//! What other programs make of the same store

use std::path::Path;
use std::process::{Command, Stdio};

use crate::row;

/// Copies the store with rclone, backs it up with restic, and compares the bytes.
pub(crate) fn compare(store: &Path, published: u64) {
    let folder = tempfile::tempdir().unwrap();
    row("bytes of the store's files", size(store), "");
    let copy = folder.path().join("rclone");
    let copied =
        Command::new("rclone").args(["copy", "--config", "/dev/null"]).arg(store).arg(&copy).run();
    if copied {
        show("rclone's copy", published, size(&copy), "0.6");
    }
    let repository = folder.path().join("restic");
    let restic = || {
        let mut restic = Command::new("restic");
        restic.args(["--no-cache", "--repo"]).arg(&repository).env("RESTIC_PASSWORD", "measured");
        restic
    };
    if restic().arg("init").run() && restic().arg("backup").arg(store).run() {
        show("restic's repository", published, size(&repository), "1.1");
    }
}

fn show(what: &str, published: u64, bytes: u64, goal: &str) {
    row(&format!("bytes of {what}"), bytes, "");
    let ratio = published as f64 / bytes as f64;
    row(&format!("bytes at the remote over those of {what}"), format!("{ratio:.2}"), goal);
}

trait Run {
    /// Returns whether the program is here. Ends the measurement if it fails.
    fn run(&mut self) -> bool;
}

impl Run for Command {
    fn run(&mut self) -> bool {
        let program = self.get_program().to_string_lossy().into_owned();
        match self.stdout(Stdio::null()).stderr(Stdio::inherit()).status() {
            Ok(status) => assert!(status.success(), "{program} failed"),
            Err(_) => {
                eprintln!("SKIPPED: there is no {program}");
                return false;
            }
        }
        true
    }
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => size(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(size).sum()
}
