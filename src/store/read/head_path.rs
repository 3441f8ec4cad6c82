//! The fast path: reads the tail from what the head names, without listing the folder.

use std::sync::Arc;

use crate::error::Result;
use crate::store::folder::decoder::RecordDecoder;
use crate::store::folder::pack::pack_lines::ReversePackLines;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{Folder, HeadState, Opened, settings};
use crate::store::read::tail::Tail;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::name::{NameTime, RecordName};
use crate::store::record::seq_set::SeqSet;

impl Tail {
    /// Reads the tail from the head, if the head names enough and nothing in the folder has changed since the head
    /// was written. Reads a few small files, however long the conversation is.
    pub(crate) fn read_from_head(folder: &Folder, n: usize) -> Result<Option<Self>> {
        let (head_bytes, HeadState::Known(head)) = folder.head()? else {
            return Ok(None);
        };
        let (profile, None) = (match head.profile() {
            // If there were any records, the change stamp would differ.
            0 => Default::default(),
            _ => settings::read(folder, HeadState::Known(head), None)?,
        }) else {
            return Ok(None);
        };
        if profile.seq > head.seq {
            return Ok(None);
        }
        let retention = profile.retention.unwrap_or(folder.retention);
        let mut wanted = n.max(1);
        if retention.most() < head.seq.saturating_sub(profile.expired) {
            // One more than the limit shows tells where the visible messages begin.
            wanted = wanted.max(usize::try_from(retention.most()).unwrap_or(usize::MAX) + 1);
        }
        let names = head.newest().take_while(|name| name.seq > profile.expired);
        let names: Vec<_> = names.take(wanted).collect();
        let whole = names.len() as u64 == head.seq.saturating_sub(profile.expired);
        // A head that names no records cannot show whether they open.
        if (names.len() < wanted && !whole) || !folder.matches_stamps(&head)? {
            return Ok(None);
        }
        let Some(messages) = open_all(folder, &names)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            head_bytes,
            head: HeadState::Known(head),
            last_seq: head.seq,
            newest: names.first().map_or(NameTime::MIN, |name| name.time),
            erased: SeqSet::default(),
            forgets: Vec::new(),
            wanted: SeqSet::default(),
            resurrected: Vec::new(),
            unpurged: Vec::new(),
            ahead: Vec::new(),
            loose: messages.len(),
            is_survey: false,
            is_disturbed: false,
            profile,
            retention,
            bytes: messages.iter().map(|stored| stored.message.content.len()).sum(),
            messages: messages.into(),
            whole,
            window: None,
            skipped: Vec::new(),
        }))
    }

    /// Adds what others have appended since, if the head names all of it and nothing else has changed. Returns
    /// `false` and changes nothing if the folder must be scanned.
    pub(crate) fn advance_from_head(&mut self, folder: &Folder) -> Result<bool> {
        let (head_bytes, HeadState::Known(head)) = folder.head()? else {
            return Ok(false);
        };
        let (new, old): (Vec<_>, Vec<_>) = head.newest().partition(|name| name.seq > self.last_seq);
        let goes_on = match new.last() {
            Some(first) => first.seq == self.last_seq + 1 && first.time >= self.newest,
            None => head.seq == self.last_seq,
        };
        if !goes_on
            || !self.is_sound()
            || !matches!(self.head, HeadState::Known(before) if before.is_of_one_run_with(&head))
            || self.profile.rev != head.profile()
            || !self.names().zip(&old).all(|(known, old)| known == *old)
            || !folder.matches_stamps(&head)?
        {
            return Ok(false);
        }
        let Some(messages) = open_all(folder, &new)? else {
            return Ok(false);
        };
        self.add(&messages);
        self.loose += messages.len();
        self.head = HeadState::Known(head);
        self.head_bytes = head_bytes;
        Ok(true)
    }
}

/// Opens messages, given newest first; `None` if one of them is not found or does not open.
fn open_all(folder: &Folder, names: &[RecordName]) -> Result<Option<Vec<Arc<StoredMessage>>>> {
    let (mut messages, mut decoder) = (Vec::with_capacity(names.len()), RecordDecoder::new(folder));
    let mut pack = None;
    for &name in names {
        // Messages before one in a pack are usually in packs too.
        let opened = match &mut pack {
            None => match decoder.read(name)? {
                Opened::Gone => {
                    pack = pack_that_ends_with(folder, name)?;
                    open_next(pack.as_mut(), &mut decoder, name)?
                }
                opened => opened,
            },
            lines => open_next(lines.as_mut(), &mut decoder, name)?,
        };
        let Opened::Message(message) = opened else {
            return Ok(None);
        };
        messages.push(message);
    }
    messages.reverse();
    Ok(Some(messages))
}

fn pack_that_ends_with(folder: &Folder, last: RecordName) -> Result<Option<ReversePackLines>> {
    // One listing is enough: either no name has changed since the head was written, or the pack is not found.
    let packs = folder.packs_at_once()?.names;
    Ok(match packs.into_iter().find(|pack| pack.last == last) {
        Some(name) => match Pack::open(folder, name)? {
            OpenedPack::Pack(pack) => Some(ReversePackLines::new(pack)),
            OpenedPack::Gone | OpenedPack::Skipped(_) => None,
        },
        None => None,
    })
}

/// Opens the next older record of a pack, if it has this name.
fn open_next(
    lines: Option<&mut ReversePackLines>,
    decoder: &mut RecordDecoder<'_>,
    name: RecordName,
) -> Result<Opened> {
    match lines.map(ReversePackLines::next).transpose()?.flatten() {
        Some(line) if line.name == Some(name) => decoder.open(name, line.text(), line.file()),
        _ => Ok(Opened::Gone),
    }
}
