//! A device: its store, its stream, and what it has read of others

use std::collections::{BTreeMap, BTreeSet};

/// A message, a stream, and a token of a publish.
pub(crate) type Message = u8;
pub(crate) type Stream = u8;
pub(crate) type Token = u8;

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) message: Message,
    pub(crate) is_own: bool,
    pub(crate) is_forgotten: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum Change {
    Said(Message),
    Forgotten(Message),
    /// A message that was taken out of the stream.
    TakenOut,
}

/// What a stream's head leads to: all changes, and the publishes that led there, each by the number of changes until then
/// and its token.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) token: Token,
    pub(crate) changes: Vec<Change>,
    pub(crate) line: BTreeSet<(u8, Token)>,
    /// Streams that this one takes the place of.
    pub(crate) replaces: BTreeSet<Stream>,
}

/// What is about to be published.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) head: Head,
    pub(crate) records: u8,
    pub(crate) forgotten: BTreeSet<Message>,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) stream: Stream,
    pub(crate) records: Vec<Record>,
    pub(crate) forgotten: BTreeSet<Message>,
    /// How many records and which forgettings were published, and the head that did it.
    pub(crate) published: u8,
    pub(crate) published_forgotten: BTreeSet<Message>,
    pub(crate) head: Head,
    pub(crate) pending: Option<Pending>,
    /// The last publish of each stream that was applied.
    pub(crate) read: BTreeMap<Stream, (u8, Token)>,
    /// Whether the stream has not begun yet, and which streams it takes the place of.
    pub(crate) is_beginning: bool,
    pub(crate) replaces: BTreeSet<Stream>,
    /// Whether it does not share the conversation, and which of its streams stay because of that.
    pub(crate) is_private: bool,
    pub(crate) kept: BTreeSet<Stream>,
    /// The space that it is in. Each removal of a device begins another one.
    pub(crate) space: u8,
}

impl Device {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, ..Self::default() }
    }

    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Forgotten(message) => {
                self.forgotten.insert(message);
                for record in &mut self.records {
                    record.is_forgotten |= record.message == message;
                }
            }
            Change::Said(message) => {
                let is_here = self.records.iter().any(|record| record.message == message);
                if !is_here && !self.forgotten.contains(&message) {
                    self.records.push(Record { message, is_own: false, is_forgotten: false });
                }
            }
            Change::TakenOut => {}
        }
    }

    pub(crate) fn present(&self) -> Vec<Message> {
        let there = self.records.iter().filter(|record| !record.is_forgotten);
        let mut present: Vec<Message> = there.map(|record| record.message).collect();
        present.sort_unstable();
        present
    }

    /// Leaves the stream for a new one.
    pub(crate) fn begin_stream(&mut self, stream: Stream) {
        let left = std::mem::replace(&mut self.stream, stream);
        self.replaces.append(&mut self.kept);
        self.replaces.insert(left);
        self.published = 0;
        self.head = Head::default();
        self.pending = None;
        self.published_forgotten.clear();
        self.is_beginning = true;
        self.read.clear();
    }

    /// The changes of the stream with everything that is here now. `heard` is what the streams of others have.
    pub(crate) fn changes(&self, heard: &BTreeSet<Message>) -> Vec<Change> {
        let mut changes = self.head.changes.clone();
        if self.is_private {
            return changes;
        }
        for change in &mut changes {
            if matches!(change, Change::Said(message) if self.forgotten.contains(message)) {
                *change = Change::TakenOut;
            }
        }
        let new = self.forgotten.difference(&self.published_forgotten);
        changes.extend(new.map(|message| Change::Forgotten(*message)));
        for (number, record) in (0..).zip(&self.records) {
            let is_new = match self.is_beginning {
                true => !heard.contains(&record.message),
                false => record.is_own,
            };
            if number >= self.published && is_new && !record.is_forgotten {
                changes.push(Change::Said(record.message));
            }
        }
        changes
    }

    /// Notes that a publish has arrived.
    pub(crate) fn adopt(&mut self, pending: Pending) {
        self.head = pending.head;
        self.published = pending.records;
        self.published_forgotten = pending.forgotten;
        self.pending = None;
    }

    /// Joins another space.
    pub(crate) fn join(&mut self, space: u8, stream: Stream) {
        self.begin_stream(stream);
        self.replaces.clear();
        self.space = space;
    }
}
