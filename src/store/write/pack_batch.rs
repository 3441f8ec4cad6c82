//! Writes many messages at once: seals them into a pack that is made durable once.

use std::sync::Arc;
use std::thread;
use std::vec::IntoIter;

use zeroize::Zeroizing;

use crate::crypto::AssociatedData;
use crate::error::{Error, Result};
use crate::store::folder::pack::publish;
use crate::store::read::tail::Tail;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::validation::{TimestampPolicy, ValidMessage};
use crate::store::write::committer::Committer;

/// The most bytes of records in one pack; the last record may exceed it.
const BYTES: usize = 32 << 20;
/// How many records two threads seal before they are written.
const STRETCH: usize = 4_096;

/// The messages of one pack and their encoded records. Encoding them needs no lock.
pub(crate) struct Batch {
    drafts: Vec<ValidMessage>,
    records: Vec<Zeroizing<Vec<u8>>>,
}

impl Batch {
    /// Takes the next messages, at most `most`; `None` if there are no more.
    pub(crate) fn next(rest: &mut IntoIter<ValidMessage>, most: usize) -> Result<Option<Self>> {
        let mut bytes = 0;
        let fits = |draft: &&ValidMessage| {
            let fits = bytes < BYTES;
            bytes = bytes.saturating_add(draft.size);
            fits
        };
        let count = rest.as_slice().iter().take(most).take_while(fits).count();
        let drafts: Vec<ValidMessage> = rest.take(count).collect();
        if count == 0 { Ok(None) } else { Self::of(drafts).map(Some) }
    }

    /// Publishes messages batch by batch, at most `most` in each. Stops at the first batch that fails.
    pub(crate) fn each(
        drafts: Vec<ValidMessage>,
        most: usize,
        mut publish: impl FnMut(Self) -> Result<Vec<Arc<StoredMessage>>>,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let total = drafts.len();
        let mut stored = Vec::with_capacity(total);
        let mut rest = drafts.into_iter();
        loop {
            let kept = Self::next(&mut rest, most);
            match kept.and_then(|batch| batch.map(&mut publish).transpose()) {
                Ok(Some(mut kept)) => stored.append(&mut kept),
                Ok(None) => return Ok(stored),
                Err(error) => return Err(Error::partial(stored.len(), total, error)),
            }
        }
    }

    /// A batch of these messages, which must fit in one pack.
    pub(crate) fn of(drafts: Vec<ValidMessage>) -> Result<Self> {
        let records = drafts.iter().map(ValidMessage::encode).collect::<Result<_>>()?;
        Ok(Self { drafts, records })
    }

    /// Publishes the messages under the next numbers, in their order. On return they are durable and the head records
    /// them. As with single records, the pack becomes durable before the head, so no head records what a power
    /// failure took.
    pub(crate) fn publish(
        self,
        committer: &Committer<'_>,
        tail: &mut Tail,
        dating: TimestampPolicy,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let names = self.names(tail, dating)?;
        self.publish_as(committer, tail, names)
    }

    /// [`publish`](Self::publish) under existing names.
    pub(crate) fn publish_as(
        self,
        committer: &Committer<'_>,
        tail: &mut Tail,
        names: Vec<RecordName>,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let mut lines: Vec<_> = names.iter().copied().zip(&self.records).collect();
        lines.sort_unstable_by_key(|(name, _)| *name);
        let mut pack = None;
        names.iter().for_each(|name| PackName::add(&mut pack, *name));
        publish(committer.folder, &mut |sink| {
            for stretch in lines.chunks(STRETCH) {
                let (front, back) = sealed_by_two(committer, stretch);
                sink(&front?)?;
                sink(&back?)?;
            }
            Ok(pack.map(|pack: PackName| pack.to_string()))
        })?;
        let scope = &committer.folder.scope;
        let stored = names.into_iter().zip(self.drafts);
        let stored: Vec<_> = stored
            .map(|(name, draft)| Arc::new(StoredMessage::new(scope, name, draft.message)))
            .collect();
        tail.add(&stored);
        committer.acknowledge_packed(tail)?;
        tracing::debug!(records = stored.len(), "sealed into a pack");
        Ok(stored)
    }

    fn names(&self, tail: &Tail, dating: TimestampPolicy) -> Result<Vec<RecordName>> {
        let used_up = Error::InvalidMessage { reason: "the conversation's numbers are used up" };
        let count = u64::try_from(self.drafts.len()).unwrap_or(u64::MAX);
        let last = tail.last_seq.checked_add(count).ok_or(used_up)?;
        let mut newest = tail.newest;
        let numbered = (tail.last_seq + 1..=last).zip(&self.drafts);
        let named = numbered.map(|(seq, draft)| {
            let time = dating.date(draft.time, newest);
            newest = newest.max(time);
            RecordName { time, seq, kind: draft.message.role.into() }
        });
        Ok(named.collect())
    }
}

type Lines<'a> = &'a [(RecordName, &'a Zeroizing<Vec<u8>>)];

/// Seals the first and the second half of the lines in two threads.
fn sealed_by_two(
    committer: &Committer<'_>,
    lines: Lines<'_>,
) -> (Result<Vec<u8>>, Result<Vec<u8>>) {
    let (front, back) = lines.split_at(lines.len() / 2);
    thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, || sealed(committer, back));
        let front = sealed(committer, front);
        let back = match helper {
            Ok(helper) => helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // No thread can be started.
            Err(_) => sealed(committer, back),
        };
        (front, back)
    })
}

fn sealed(committer: &Committer<'_>, lines: Lines<'_>) -> Result<Vec<u8>> {
    let scope = committer.folder.scope.parts();
    let mut bytes = Vec::new();
    for (name, record) in lines {
        let name = name.to_string();
        let envelope = committer.key.seal(&AssociatedData::record(&scope, &name), record)?;
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'\t');
        bytes.extend_from_slice(&envelope);
    }
    Ok(bytes)
}
