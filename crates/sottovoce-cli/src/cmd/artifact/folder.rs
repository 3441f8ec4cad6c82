//! `sottovoce artifact add-folder`

use std::fmt::Write;
use std::io::{self, Cursor};
use std::path::{Component, Path, PathBuf};

use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact};
use zeroize::Zeroizing;

use crate::cmd::artifact::source::Wiped;
use crate::cmd::artifact::{about, announce};
use crate::exit::{Failure, Outcome};
use crate::interrupt::awaited;
use crate::output::{self, byte_size, object};
use crate::session::Session;

/// Adds the structure of a folder, and a message that refers to it
///
/// The artifact lists folders and files with their sizes, in the order of names; `artifact add` adds a file's contents.
/// Leaves out hidden entries, and never follows links.
#[derive(clap::Args)]
pub(crate) struct AddFolderArgs {
    /// The folder
    dir: PathBuf,

    /// Lists no files and folders beyond this number
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    max_files: u32,

    /// Does not append a message that refers to it
    #[arg(long)]
    no_message: bool,
}

pub(crate) async fn add_folder(session: &Session, args: AddFolderArgs) -> Outcome {
    let wrong = |error: io::Error| {
        let what = format!("{}: {error}", args.dir.display());
        Failure::input(what, "name a folder that can be read")
    };
    let root = args.dir.canonicalize().map_err(wrong)?;
    std::fs::read_dir(&root).map_err(wrong)?;
    // The folder's name: as given, or its own name if it was given as dots.
    let plain: PathBuf = args.dir.components().filter(|part| *part != Component::CurDir).collect();
    let named = match args.dir.file_name() {
        Some(_) => plain.as_os_str(),
        None => root.file_name().unwrap_or(root.as_os_str()),
    };
    let name = output::one_line(&named.to_string_lossy());
    let mut tree = Tree { room: args.max_files, ..Tree::default() };
    let looking = tokio::task::spawn_blocking(move || {
        tree.list(&root, 1);
        tree
    });
    let tree = awaited("looking", "nothing was added", looking).await?.map_err(io::Error::other)?;
    let Tree { lines, files, size, left_out, .. } = &tree;
    let shown = format!("{}, {}", output::counted(*files, "file"), byte_size(*size));
    let text = format!("{}/  {shown}\n{}", name.trim_end_matches('/'), lines.as_str());
    let store = session.store_or_make().await?;
    let new = NewArtifact::new(ArtifactKind::Folder, name.as_str());
    let content = Cursor::new(Wiped(Zeroizing::new(text)));
    let added = store.add_artifact(new, Box::new(content)).await?;
    if !session.json {
        output::note(&format!("listed {shown}; {left_out} left out"));
    }
    let row = object!("files": files, "leftOut": left_out);
    let text = (!args.no_message).then(|| about(&added.artifact));
    announce(session, &store, &added, text, None, row).await
}

/// The lines of a folder's structure.
#[derive(Default)]
struct Tree {
    lines: Zeroizing<String>,
    files: u64,
    size: u64,
    left_out: u64,
    /// How many more entries are listed.
    room: u32,
}

impl Tree {
    /// Lists what is in a folder, each folder followed by its contents.
    fn list(&mut self, folder: &Path, depth: usize) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        for entry in entries {
            let Some(room) = self.room.checked_sub(1) else {
                self.left_out += 1;
                continue;
            };
            self.room = room;
            let name = output::one_line(&entry.file_name().to_string_lossy());
            // Of the entry itself, not of what a link leads to.
            let about = entry.metadata();
            let (line, is_folder) = match &about {
                Ok(about) if about.is_dir() => (format!("{name}/"), true),
                Ok(about) if about.is_file() => {
                    self.files += 1;
                    self.size += about.len();
                    (format!("{name}  {}", byte_size(about.len())), false)
                }
                Ok(about) if about.is_symlink() => (format!("{name}  a link"), false),
                _ => (format!("{name}  no plain file"), false),
            };
            let _ = writeln!(self.lines, "{:1$}{line}", "", depth * 2);
            if is_folder {
                self.list(&entry.path(), depth + 1);
            }
        }
    }
}
