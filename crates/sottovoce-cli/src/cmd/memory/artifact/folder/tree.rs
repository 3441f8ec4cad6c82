//! The text of a folder's tree, one line for each entry.

use sottovoce::store::Artifact;
use zeroize::Zeroizing;

use crate::cmd::memory::artifact::folder::walk::{Entry, What};
use crate::cmd::memory::stats::bytes;
use crate::output;

/// Columns of indentation for each level.
const INDENT: usize = 2;

/// A tree under construction.
pub(super) struct Tree {
    lines: Vec<Zeroizing<String>>,
    files: u64,
    size: u64,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { lines: Vec::new(), files: 0, size: 0 }
    }

    /// Adds an entry with its result: the artifact that holds the file, or the reason why it was skipped.
    pub(super) fn add(&mut self, entry: &Entry, outcome: Result<&Artifact, &str>) {
        let name = entry.path.file_name().unwrap_or(entry.path.as_os_str()).to_string_lossy();
        let name = output::one_line(&name);
        let line = match (&entry.what, outcome) {
            (What::Folder, _) => format!("{name}/"),
            (_, Ok(artifact)) => {
                self.files += 1;
                self.size += artifact.size;
                let lines = artifact
                    .lines
                    .map_or_else(|| "binary".to_owned(), |lines| output::counted(lines, "line"));
                format!("{name}  {}, {lines}  {}", bytes(artifact.size), artifact.reference())
            }
            (_, Err(reason)) => format!("{name}  left out: {reason}"),
        };
        let indent = " ".repeat(entry.depth() * INDENT);
        self.lines.push(Zeroizing::new(format!("{indent}{line}")));
    }

    /// The whole tree below the folder's name.
    pub(super) fn text(&self, name: &str) -> Zeroizing<String> {
        let files = output::counted(self.files, "file");
        let head = format!("{}/  {files}, {}\n", name.trim_end_matches('/'), bytes(self.size));
        let room = head.len() + self.lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let mut text = Zeroizing::new(String::with_capacity(room));
        text.push_str(&head);
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}
