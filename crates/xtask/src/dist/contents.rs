//! What belongs to a release besides the binary.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::dist::edition::Edition;
use crate::dist::file::File;
use crate::dist::toolchain;
use crate::task::Result;

#[derive(Debug)]
pub(crate) struct Contents {
    /// Manual pages, by their file names.
    pub(crate) pages: Vec<File>,
    /// The completion scripts of bash, zsh and fish, in this order.
    pub(crate) completions: [Vec<u8>; 3],
    /// The units for the system and for one user, with the binary at `/usr/bin`.
    pub(crate) units: Option<[String; 2]>,
    /// The licences of the program and of what it is built from.
    pub(crate) licences: String,
}

impl Contents {
    /// Asks `program`, which runs on this machine, for what it knows of itself.
    pub(crate) fn gather(
        root: &Path,
        program: &Path,
        edition: Edition,
        licences: String,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        toolchain::run(Command::new(program).arg("man").arg(folder.path()))?;
        let mut pages = Vec::new();
        for page in fs::read_dir(folder.path())? {
            let page = page?;
            let name = page.file_name().into_string().map_err(|_| "a page's name is not UTF-8")?;
            pages.push(File::new(name, fs::read(page.path())?));
        }
        pages.sort();
        let script = |shell| -> Result<Vec<u8>> {
            let script = toolchain::output(Command::new(program).args(["completions", shell]))?;
            Ok(script.into_bytes())
        };
        // The small edition has no servers to run.
        let units = match edition {
            Edition::Small => None,
            Edition::Whole => {
                Some([unit(root, "sottovoce.service")?, unit(root, "sottovoce-user.service")?])
            }
        };
        Ok(Self {
            pages,
            completions: [script("bash")?, script("zsh")?, script("fish")?],
            units,
            licences,
        })
    }
}

/// A unit with the place of an installed binary.
fn unit(root: &Path, name: &str) -> Result<String> {
    let unit = fs::read_to_string(root.join("packaging/systemd").join(name))?;
    let mut placed = String::new();
    for line in unit.lines() {
        match line.strip_prefix("ExecStart=").and_then(|command| command.split_once(' ')) {
            Some((_, arguments)) => {
                placed.push_str(&format!("ExecStart=/usr/bin/sottovoce {arguments}"))
            }
            None => placed.push_str(line),
        }
        placed.push('\n');
    }
    Ok(placed)
}
