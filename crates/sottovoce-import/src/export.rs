//! Data exports: files of conversations, in a folder or in the zip as people get it.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek};
use std::path::Path;

use jiff::Timestamp;
use serde_json::value::RawValue;
use sottovoce::admin::Progress;
use sottovoce::import::RefusalReason::{self, Corrupt, NotPlain, Unreadable};
use sottovoce::import::{ImportedConversation, ImportedConversations, ImportedMessage, Refusal};
use sottovoce::{ChatMessage, ChatRole, Error, Result};
use zip::ZipArchive;

use crate::fields::json;
use crate::reader::each;
use crate::source::{Bytes, EntryKind, Folder, Refusable, SourceFile};

/// The name of these formats in reports.
const FORM: &str = "export";
/// The most bytes of a file, which is held in memory, and of all files of a zip.
const LARGEST: u64 = 1 << 30;
/// How a zip begins.
const ZIP: &[u8] = b"PK\x03\x04";

/// An object that may be a conversation.
pub(crate) struct Item<'a> {
    pub(crate) json: &'a str,
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    /// Its name in reports.
    pub(crate) place: String,
    /// The name of its file, without the ending.
    pub(crate) stem: &'a str,
    /// When the file was last changed.
    pub(crate) modified: Timestamp,
}

impl Item<'_> {
    /// Gives a conversation its title, its time and this place, if it has messages: without any it is not stored.
    pub(crate) fn name(
        &self,
        conversation: &mut ImportedConversation,
        title: Option<String>,
        created_at: Option<Timestamp>,
    ) {
        if !conversation.messages.messages.is_empty() {
            let facts = &mut conversation.facts;
            facts.title = title.filter(|title| !title.is_empty());
            facts.created_at = created_at;
            facts.file.clone_from(&self.place);
        }
    }
}

/// A message of an export. Its id, role and text identify it; the next export may change the rest.
pub(crate) struct Told<'a> {
    pub(crate) system: &'static str,
    pub(crate) conversation: &'a str,
    pub(crate) id: &'a str,
    pub(crate) role: ChatRole,
    pub(crate) words: String,
}

impl Told<'_> {
    /// The message, said at that time.
    pub(crate) fn at(self, time: Option<Timestamp>) -> Result<ImportedMessage, RefusalReason> {
        let time = time.ok_or(Corrupt("neither it nor a message before it has a time"))?;
        let name = format!("{}/{}", self.conversation, self.id);
        let message = ChatMessage::at(self.role, self.words, Timestamp::UNIX_EPOCH);
        let mut message = ImportedMessage::new(self.system, &name, FORM, message)?;
        message.message.timestamp = time;
        Ok(message)
    }
}

/// Reads each object of an export: a file, the folder that holds `conversations.json` or its numbered parts, or a zip of
/// it.
pub(crate) fn read(
    path: &Path,
    system: &'static str,
    progress: &dyn Fn(Progress),
    conversation: impl Fn(&Item<'_>) -> Result<ImportedConversation, RefusalReason>,
) -> Result<ImportedConversations> {
    let mut place = Location::of(path)?;
    let mut found = ImportedConversations::new(system);
    let files = std::mem::take(&mut place.files);
    for file in &files {
        let read = place.read(file)?.and_then(|(bytes, modified)| {
            take(&bytes, file, modified, progress, &conversation, &mut found)
        });
        match read {
            Ok(()) => {}
            Err(Corrupt(reason) | NotPlain(reason)) if files.len() == 1 => {
                return Err(Error::NotImportable { path: path.to_owned(), reason });
            }
            Err(reason) => found.refused.push(Refusal::new(file, reason)),
        }
    }
    Ok(found.sorted())
}

/// Reads each object of a file.
pub(crate) fn take(
    bytes: &[u8],
    file: &str,
    modified: Timestamp,
    progress: &dyn Fn(Progress),
    conversation: impl Fn(&Item<'_>) -> Result<ImportedConversation, RefusalReason>,
    found: &mut ImportedConversations,
) -> Result<(), RefusalReason> {
    let objects = objects(json::text(bytes)?)?;
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let stem = stem.rsplit_once('/').map_or(stem, |(_, name)| name);
    let items: Vec<_> = (1..).zip(objects).collect();
    each(&items, progress, |&(number, json)| {
        let item = Item { json, number, place: format!("{file}#{number}"), stem, modified };
        match conversation(&item) {
            Ok(conversation) => found.conversations.push(conversation),
            Err(reason) => found.refused.push(Refusal::new(&item.place, reason)),
        }
        Ok(())
    })
}

/// The elements of an array, a single object, or one object per line.
fn objects(text: &str) -> Result<Vec<&str>, RefusalReason> {
    if text.trim_ascii_start().starts_with('[') {
        let all: Vec<&RawValue> = json::parse(text, "it is not a list of conversations")?;
        return Ok(all.into_iter().map(RawValue::get).collect());
    }
    match json::object::<&RawValue>(text, "it is not JSON") {
        Ok(one) => Ok(vec![one.get()]),
        Err(reason) => {
            let lines = text.split('\n').filter(|line| !line.trim_ascii().is_empty());
            let is_object = |line: &str| json::object::<&RawValue>(line, "").is_ok();
            if !lines.clone().any(is_object) {
                return Err(reason);
            }
            Ok(lines.collect())
        }
    }
}

/// Messages by name, each with the name of the one before it.
pub(crate) type Tree<'a, T> = HashMap<&'a str, (Option<&'a str>, T)>;

/// The messages up to the `last`, from the first on.
pub(crate) fn branch<'a, 't, T>(
    tree: &'t Tree<'a, T>,
    last: &'a str,
) -> Result<Vec<(&'a str, &'t T)>, RefusalReason> {
    let (mut path, mut seen) = (Vec::new(), HashSet::new());
    let mut next = Some(last);
    while let Some((name, (before, message))) = next.and_then(|name| tree.get_key_value(name)) {
        if !seen.insert(name) {
            return Err(Corrupt("its messages form a circle"));
        }
        path.push((*name, message));
        next = *before;
    }
    path.reverse();
    Ok(path)
}

/// The files to read.
struct Location {
    folder: Folder,
    zip: Option<ZipArchive<SourceFile>>,
    files: Vec<String>,
    modified: Timestamp,
}

impl Location {
    /// Finds the files from a file or the folder of an export.
    fn of(given: &Path) -> Result<Self> {
        let modified = Timestamp::UNIX_EPOCH;
        if !given.is_dir() {
            let (folder, file) = Folder::of_file(given)?;
            if let Ok(Some(opened)) = folder.open(&file)
                && let Some(zip) = Self::of_zip(&folder, opened, given)?
            {
                return Ok(zip);
            }
            return Ok(Self { folder, zip: None, files: vec![file], modified });
        }
        let folder = Folder::named(given)?;
        let is_one = |(name, kind): (Vec<u8>, EntryKind)| {
            let name = String::from_utf8(name).ok();
            name.filter(|name| kind != EntryKind::Folder && is_export(name))
        };
        let files: Vec<String> = folder.entries()?.into_iter().filter_map(is_one).collect();
        if files.is_empty() {
            return Err(absent(given));
        }
        Ok(Self { folder, zip: None, files, modified })
    }

    /// The files in a zip; `None` if the file is none.
    fn of_zip(folder: &Folder, mut file: SourceFile, given: &Path) -> Result<Option<Self>> {
        let mut beginning = [0; ZIP.len()];
        if file.read_exact(&mut beginning).is_err() || beginning != ZIP {
            return Ok(None);
        }
        let wrong = |reason| Error::NotImportable { path: given.to_owned(), reason };
        file.rewind().map_err(|error| Error::io("read the file", given, error))?;
        let modified = file.modified.unwrap_or(Timestamp::UNIX_EPOCH);
        let mut zip =
            ZipArchive::new(file).map_err(|_| wrong("it is cut off, or no zip of an export"))?;
        let is_one = |name: &String| is_export(name.rsplit('/').next().unwrap_or_default());
        let names = zip.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
        let mut files: Vec<String> = names.filter(is_one).collect();
        files.sort_unstable();
        let sizes = files.iter().map(|name| zip.by_name(name).map_or(0, |file| file.size()));
        if sizes.fold(0, u64::saturating_add) > LARGEST {
            return Err(wrong("its conversations are over 1 GiB"));
        }
        if files.is_empty() {
            return Err(absent(given));
        }
        Ok(Some(Self { folder: folder.clone(), zip: Some(zip), files, modified }))
    }

    /// Reads a file, and the time of its last change.
    fn read(&mut self, name: &str) -> Refusable<(Bytes, Timestamp)> {
        if let Some(zip) = &mut self.zip {
            return Ok(unpacked(zip, name).map(|bytes| (bytes, self.modified)));
        }
        let file = match self.folder.open(name) {
            Ok(file) => file,
            Err(error) => return RefusalReason::for_read_error(error).map(Err),
        };
        let Some(file) = file else { return Ok(Err(Unreadable(io::ErrorKind::NotFound))) };
        let modified = file.modified.unwrap_or(Timestamp::UNIX_EPOCH);
        let bytes = file.contents(LARGEST).map_err(|error| Unreadable(error.kind()));
        Ok(bytes.and_then(|bytes| Ok((bytes.ok_or(Corrupt("it is over 1 GiB"))?, modified))))
    }
}

/// The bytes of a file in a zip: never more than the zip says.
fn unpacked(zip: &mut ZipArchive<SourceFile>, name: &str) -> Result<Bytes, RefusalReason> {
    let file = zip.by_name(name);
    let file = file.map_err(|_| Corrupt("it is encrypted, or packed in an unusual way"))?;
    let size = file.size();
    let room = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
    let mut bytes = Bytes::new(Vec::new());
    bytes.try_reserve_exact(room).map_err(|_| Unreadable(io::ErrorKind::OutOfMemory))?;
    match file.take(size + 1).read_to_end(&mut bytes) {
        Ok(read) if read as u64 == size => Ok(bytes),
        _ => Err(Corrupt("it is damaged in the zip")),
    }
}

fn absent(given: &Path) -> Error {
    Error::io("find `conversations.json` in it", given, io::ErrorKind::NotFound.into())
}

/// Whether a file of an export has that name. Large exports have numbered parts.
fn is_export(name: &str) -> bool {
    let part = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
    part.is_some_and(|part| {
        let number = part.strip_prefix('-');
        part.is_empty()
            || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_export_are_numbered() {
        assert!(is_export("conversations.json") && is_export("conversations-007.json"));
        for other in ["conversations-.json", "conversations-x.json", "shared_conversations.json"] {
            assert!(!is_export(other), "{other}");
        }
    }
}
