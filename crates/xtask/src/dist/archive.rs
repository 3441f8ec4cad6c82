//! Archives whose bytes depend on nothing but what is in them.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::dist::file::File;
use crate::task::Result;

/// A folder that belongs to another user than root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned {
    pub(crate) path: &'static str,
    pub(crate) user: u64,
}

/// The files with their folders, sorted by path, owned by root, changed at `time` (seconds since 1970).
pub(crate) fn tar(files: &[File], owned: &[Owned], time: u64) -> Result<Vec<u8>> {
    let mut files: Vec<&File> = files.iter().collect();
    files.sort();
    let mut folders: BTreeSet<&str> = owned.iter().map(|folder| folder.path).collect();
    for file in &files {
        folders.extend(file.path.match_indices('/').filter_map(|(at, _)| file.path.get(..at)));
    }
    let mut archive = Builder::new(Vec::new());
    for folder in folders {
        let user = owned.iter().find(|owned| owned.path == folder).map(|owned| owned.user);
        let mut header =
            header(EntryType::Directory, if user.is_some() { 0o700 } else { 0o755 }, time);
        header.set_uid(user.unwrap_or(0));
        header.set_gid(user.unwrap_or(0));
        archive.append_data(&mut header, format!("./{folder}/"), std::io::empty())?;
    }
    for file in files {
        let mut header = header(EntryType::Regular, file.mode, time);
        header.set_size(file.content.len() as u64);
        archive.append_data(&mut header, format!("./{}", file.path), file.content.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

fn header(kind: EntryType, mode: u32, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

/// Compressed, without a name or a time.
pub(crate) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut compressed = GzBuilder::new().write(Vec::new(), Compression::best());
    compressed.write_all(content)?;
    Ok(compressed.finish()?)
}

/// The archive format of `ar`, of which a Debian package is one.
pub(crate) fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let length = content.len();
        archive.extend(
            format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, 100644).bytes(),
        );
        archive.extend(*content);
        if length % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}
