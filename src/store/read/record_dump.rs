//! Reads everything in a conversation, to export it or copy it to another store.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::Finding;
use crate::store::folder::Opened;
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::SeqSet;

/// How many numbers to read at a time.
const STRETCH: u64 = 4096;

/// A record with its name.
pub(crate) struct Record {
    pub(crate) name: RecordName,
    pub(crate) body: Body,
}

/// The contents of a record.
pub(crate) enum Body {
    Message(ChatMessage),
    Forget(SeqSet),
}

/// Which messages to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
}

impl Part {
    /// All messages.
    pub(crate) const ALL: Self =
        Self { first: 1, last: u64::MAX, since: Timestamp::MIN, until: Timestamp::MAX };

    fn has(&self, name: RecordName, at: Timestamp) -> bool {
        (self.first..=self.last).contains(&name.seq) && (self.since..=self.until).contains(&at)
    }
}

/// Passes a conversation's records to a callback in the order of their numbers. A partial dump has only messages.
/// Returns findings about what does not open.
pub(crate) fn read(
    reader: &Reader,
    tail: &Tail,
    part: Part,
    visit: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<Vec<Finding>> {
    let mut skipped = Vec::new();
    let mut forgets = tail.forgets.clone();
    forgets.sort_unstable_by_key(|name| name.seq);
    let mut forgets = forgets.into_iter().filter(|_| part == Part::ALL).peekable();
    let last = tail.last_seq.min(part.last);
    let mut first = part.first.max(1);
    while first <= last {
        let end = last.min(first.saturating_add(STRETCH - 1));
        let mut reading = reader.read_if(&RangeQuery::Seqs(first..=end))?;
        reading.messages.sort_unstable_by_key(|stored| stored.seq);
        for stored in reading.messages {
            while let Some(name) = forgets.next_if(|name| name.seq < stored.seq) {
                visit(forget(reader, name)?)?;
            }
            if part.has(stored.name, stored.ordered_at()) {
                let body = Body::Message(stored.message.clone());
                visit(Record { name: stored.name, body })?;
            }
        }
        Finding::add_new(&mut skipped, reading.skipped);
        let Some(next) = end.checked_add(1) else { break };
        first = next;
    }
    forgets.try_for_each(|name| visit(forget(reader, name)?))?;
    Ok(skipped)
}

fn forget(reader: &Reader, name: RecordName) -> Result<Record> {
    match reader.folder.open(name)? {
        Opened::Forget(record) => Ok(Record { name, body: Body::Forget(record.erased) }),
        _ => {
            let reason = "messages were forgotten meanwhile; try again";
            Err(Error::damaged(name.to_string(), reason))
        }
    }
}
