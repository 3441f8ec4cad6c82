//! Reads messages for other devices, a stretch of numbers at a time.

use std::collections::HashMap;

use crate::error::Result;
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::record::import_digest::Origin;
use crate::store::{Finding, StoredMessage};
use crate::transfer::exchange::{Exchange, SharedMessage};

/// The most numbers of a stretch.
const NUMBERS: u64 = 16_384;
/// How much text a stretch may have; its last message may exceed it.
const BYTES: usize = 16 << 20;

/// Messages with consecutive numbers.
#[derive(Debug, Default)]
pub struct Stretch {
    /// The messages, sorted by number.
    pub messages: Vec<StretchMessage>,
    /// The highest number that was read: the next stretch begins after it.
    pub read_to: u64,
    /// The highest number of the conversation at that moment.
    pub last_seq: u64,
    /// Whether limits may hide or remove messages here that other stores keep.
    pub is_limited: bool,
}

/// A message with its number here.
#[derive(Debug)]
pub struct StretchMessage {
    /// The number.
    pub seq: u64,
    /// Whether it came from another device.
    pub is_received: bool,
    /// The message.
    pub message: SharedMessage,
}

impl Exchange {
    /// The next messages after a number: those of at most 16,384 numbers, with about 16 MiB of text. What has expired or
    /// is hidden by limits is not among them, nor is what is damaged.
    ///
    /// # Errors
    /// [`Error::WrongKey`](crate::Error::WrongKey) and similar errors for a message that another key or program may
    /// open, and what prevents reading the conversation.
    pub async fn messages(&self, after: u64) -> Result<Stretch> {
        self.store.read_with(move |reader| read(reader, after)).await
    }

    /// The origin of the message with a number. `None` if there is none. If it differs from what it was, the folder was
    /// replaced by another state of it.
    ///
    /// # Errors
    /// Those of [`messages`](Self::messages).
    pub async fn message_origin(&self, seq: u64) -> Result<Option<Origin>> {
        self.store.read_with(move |reader| origin(reader, seq)).await
    }
}

fn read(reader: &Reader, after: u64) -> Result<Stretch> {
    let end = after.saturating_add(NUMBERS);
    let (mut reading, tail) = reader.read_kept(&RangeQuery::Seqs(after.saturating_add(1)..=end))?;
    if let Some(refusal) = reading.skipped.iter().find_map(Finding::refusal) {
        return Err(refusal);
    }
    let horizon = reader.horizon(&tail)?;
    reading.messages.sort_unstable_by_key(|stored| stored.seq);
    let mut originals = Originals { reader, known: HashMap::new() };
    let mut stretch = Stretch {
        messages: Vec::new(),
        read_to: end.min(tail.last_seq).max(after.min(tail.last_seq)),
        last_seq: tail.last_seq,
        is_limited: !tail.retention.is_forever() || tail.profile.expired > 0,
    };
    let mut bytes = 0;
    for stored in &reading.messages {
        if bytes >= BYTES {
            stretch.read_to = stored.seq.saturating_sub(1);
            break;
        }
        if !horizon.shows(stored.name) {
            continue;
        }
        let copy_of = originals.of(stored)?;
        if let Some((is_received, message)) = SharedMessage::of(stored, copy_of) {
            bytes += message.message.content.len();
            stretch.messages.push(StretchMessage { seq: stored.seq, is_received, message });
        }
    }
    Ok(stretch)
}

/// Origins of the messages that restored copies are copies of.
struct Originals<'a> {
    reader: &'a Reader,
    known: HashMap<u64, Option<Origin>>,
}

impl Originals<'_> {
    fn of(&mut self, stored: &StoredMessage) -> Result<Option<Origin>> {
        let Some((_, number)) = stored.message.restored_from() else { return Ok(None) };
        if let Some(known) = self.known.get(&number) {
            return Ok(*known);
        }
        let origin = origin(self.reader, number)?;
        self.known.insert(number, origin);
        Ok(origin)
    }
}

fn origin(reader: &Reader, seq: u64) -> Result<Option<Origin>> {
    let (reading, _) = reader.read_kept(&RangeQuery::Seqs(seq..=seq))?;
    if let Some(refusal) = reading.skipped.iter().find_map(Finding::refusal) {
        return Err(refusal);
    }
    let stored = reading.messages.first();
    Ok(stored.and_then(|stored| Origin::of_stored(&stored.scope, stored.seq, &stored.message)))
}
