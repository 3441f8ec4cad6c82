//! JSON that can be imported again: an empty store becomes the same conversation, with the same prompts and the same
//! export to the byte.
//!
//! Each element is a line, so that large exports can be searched. An artifact's contents are pieces of base64, so that
//! they need not fit into memory.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::folder::{artifact_files, document, snapshot_files};
use crate::store::read::reader::Reader;
use crate::store::read::record_dump::{self, Body, Part, Record};
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::encoding::to_json;
use crate::store::record::seq_set::SeqSet;
use crate::store::{Profile, Progress};
use crate::transfer::export::exported::{Exported, unwritten};

/// The bytes in one piece of an artifact.
const PIECE: usize = 48 << 10;

/// The text before the conversations.
pub(crate) const OPENING: &str = "{\"sottovoce\":1,\"conversations\":[\n";
const CLOSING: &str = "]}\n";

/// The fields before a conversation's records.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    scope: String,
    last_seq: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    profile: &'a Profile,
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imports: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a ChatMessage>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    erased: Option<&'a SeqSet>,
}

/// Writes one conversation.
pub(super) fn conversation(
    reader: &Reader,
    part: Part,
    to: &mut dyn Write,
    is_first: bool,
    progress: &dyn Fn(Progress),
) -> Result<Exported> {
    let folder = &reader.folder;
    let tail = reader.load(0)?;
    tail.check_settings(folder)?;
    let opening = if is_first { OPENING } else { ",\n" };
    to.write_all(opening.as_bytes()).map_err(unwritten)?;
    let head = head(reader, &tail, part)?;
    // Without its closing brace: the lists follow.
    to.write_all(head.strip_suffix(b"}").unwrap_or(&head)).map_err(unwritten)?;
    let mut done = Exported::default();
    let total =
        usize::try_from(tail.last_seq.saturating_sub(tail.without_message().count())).unwrap_or(0);
    let mut list = List::begin(to, "records")?;
    done.skipped = record_dump::read(reader, &tail, part, &mut |Record { name, body }| {
        let name = name.stem();
        match &body {
            Body::Message(message) => {
                done.messages += 1;
                list.add(&Row { name, message: Some(message), erased: None })?;
            }
            Body::Forget(erased) => {
                list.add(&Row { name, message: None, erased: Some(erased) })?;
            }
        }
        let now = usize::try_from(done.messages).unwrap_or(usize::MAX);
        progress(Progress { done: now, total: total.max(now) });
        Ok(())
    })?;
    list.end()?;
    if part == Part::ALL {
        let (mut snapshots, mut wrong) = snapshot_files::list(folder, &tail.profile)?;
        done.skipped.append(&mut wrong);
        done.snapshots = snapshots.len();
        snapshots.sort_by(|a, b| a.id.cmp(&b.id));
        let mut list = List::begin(to, "snapshots")?;
        snapshots.iter().try_for_each(|snapshot| list.add(snapshot))?;
        list.end()?;
        artifacts(reader, &tail, to, &mut done)?;
    }
    to.write_all(b"}").map_err(unwritten)?;
    Ok(done)
}

/// Writes the text after the last conversation.
pub(super) fn end(to: &mut dyn Write, is_empty: bool) -> std::io::Result<()> {
    if is_empty {
        to.write_all(OPENING.as_bytes())?;
    }
    to.write_all(CLOSING.as_bytes())
}

fn head(reader: &Reader, tail: &Tail, part: Part) -> Result<Zeroizing<Vec<u8>>> {
    let folder = &reader.folder;
    let read = |document| document::read(folder, document);
    let text = |bytes: Zeroizing<Vec<u8>>| String::from_utf8(bytes.to_vec()).ok();
    let partial = part != Part::ALL;
    let profile = match partial {
        true => tail.profile.without_model_words(),
        false => Profile { seq: 0, ..Profile::clone(&tail.profile) },
    };
    // Each store has its own document of tombstones.
    let profile = &Profile { tombstones_rev: 0, ..profile };
    let head = Head {
        scope: folder.scope.to_string(),
        last_seq: tail.last_seq,
        partial,
        profile,
        calibration: read(Document::Calibration)?.and_then(text),
        imports: read(Document::Imports)?.map(|bytes| BASE64.encode(&*bytes)),
    };
    to_json(&head)
}

fn artifacts(reader: &Reader, tail: &Tail, to: &mut dyn Write, done: &mut Exported) -> Result<()> {
    let (mut artifacts, mut wrong) = artifact_files::list(&reader.folder, &tail.profile)?;
    done.skipped.append(&mut wrong);
    artifacts.sort_by(|a, b| a.id.cmp(&b.id));
    let mut list = List::begin(to, "artifacts")?;
    for artifact in artifacts {
        let Some(mut contents) =
            artifact_files::read_contents(&reader.folder, &tail.profile, &artifact.id)?
        else {
            continue;
        };
        list.separate()?;
        let put = |to: &mut dyn Write, bytes: &[u8]| to.write_all(bytes).map_err(unwritten);
        put(list.to, b"{\"meta\":")?;
        put(list.to, &to_json(&artifact)?)?;
        put(list.to, b",\"content\":[")?;
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        let mut is_first = true;
        loop {
            let read = fill(&mut contents, &mut piece)?;
            let bytes = piece.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            put(list.to, if is_first { b"\"" } else { b",\n\"" })?;
            put(list.to, Zeroizing::new(BASE64.encode(bytes)).as_bytes())?;
            put(list.to, b"\"")?;
            is_first = false;
        }
        put(list.to, b"]}")?;
        done.artifacts += 1;
    }
    list.end()
}

/// Fills the buffer, or reads to the end.
fn fill(contents: &mut dyn Read, into: &mut [u8]) -> Result<usize> {
    let mut read = 0;
    while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match contents.read(rest) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) => return Err(Error::io("read the artifact", "the artifact", error)),
        }
    }
    Ok(read)
}

/// A list of a conversation, with an element a line.
struct List<'a> {
    to: &'a mut dyn Write,
    is_empty: bool,
}

impl<'a> List<'a> {
    fn begin(to: &'a mut dyn Write, name: &str) -> Result<Self> {
        to.write_all(format!(",\n\"{name}\":[\n").as_bytes()).map_err(unwritten)?;
        Ok(Self { to, is_empty: true })
    }

    fn separate(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_empty) {
            self.to.write_all(b",\n").map_err(unwritten)?;
        }
        Ok(())
    }

    fn add(&mut self, element: &impl Serialize) -> Result<()> {
        self.separate()?;
        self.to.write_all(&to_json(element)?).map_err(unwritten)
    }

    fn end(self) -> Result<()> {
        self.to.write_all(b"\n]").map_err(unwritten)
    }
}
