//! One state of a conversation, as the rules look at it. A store of any kind shows it through its medium, and a file
//! store under its lock, whose futures are ready at once.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::error::{Error, Result};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::Finding;
use crate::store::record::name::RecordName;
use crate::store::record::profile::Profile;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::rules::ReadQuery;
use crate::store::rules::forget_plan::MessageRefs;

/// A conversation in one state.
pub(crate) trait CurrentState: Sync {
    /// How many numbers a rule reads at a time where it looks at many.
    const STRETCH: u64;

    /// The highest number.
    fn last_seq(&self) -> u64;

    /// The numbers that are recorded as forgotten.
    fn forgotten(&self) -> &SeqSet;

    /// The numbers that are known to have no message.
    fn vacant(&self) -> SeqSet;

    fn profile(&self) -> &Profile;

    /// The numbers that may be those of restored copies.
    fn restored(&self) -> SeqSet;

    /// The limits of conversations that have none of their own.
    fn default_retention(&self) -> Retention;

    /// The name of the message with this number, if that takes no reading.
    fn known_name(&self, seq: u64) -> Option<RecordName>;

    fn read(&self, query: ReadQuery) -> impl Future<Output = Result<ReadResult>> + Send;

    /// From where on these limits show the conversation.
    fn horizon(&self, limits: Retention) -> impl Future<Output = Result<Horizon>> + Send;

    /// The numbers that the limits hide now.
    fn hidden(&self) -> impl Future<Output = Result<SeqSet>> + Send;

    /// How many messages the limits show now.
    fn shown_count(&self) -> impl Future<Output = Result<u64>> + Send;

    /// The snapshots that open, from which a forgetting takes its messages, and findings about the others.
    fn snapshots(&self) -> impl Future<Output = Result<(Vec<Snapshot>, Vec<Finding>)>> + Send;

    fn snapshot(&self, id: &str) -> impl Future<Output = Result<Option<Snapshot>>> + Send;

    /// The artifacts that go with these messages, or all of them with the whole conversation.
    fn artifacts_of(
        &self,
        refs: &MessageRefs,
        is_whole: bool,
    ) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// The backups that the store has made of this conversation, as far as they can be seen now.
    fn backups(&self) -> Vec<String> {
        Vec::new()
    }

    /// The limits in force.
    fn retention(&self) -> Retention {
        self.profile().retention.unwrap_or(self.default_retention())
    }
}

/// What to do about numbers that only another program or a later attempt can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadablePolicy {
    /// Forget nothing, because nobody can see what it would be.
    Refused,
    /// Record these numbers too. Their files are never read, and stay while they do not open.
    Recorded,
}

/// Passes each message with one of these numbers to a callback.
///
/// # Errors
/// With [`UnreadablePolicy::Refused`] if one of them can only be read under another key, by a newer program or at
/// another time. What cannot be seen is not deleted.
pub(crate) async fn survey<S: CurrentState>(
    state: &S,
    seqs: &SeqSet,
    unread: UnreadablePolicy,
    visit: &mut (dyn FnMut(&StoredMessage) + Send),
) -> Result<()> {
    for range in pieces(seqs, S::STRETCH) {
        let result = state.read(ReadQuery::Seqs(range)).await?;
        if unread == UnreadablePolicy::Refused {
            result.check_readable(seqs)?;
        }
        result.messages.iter().filter(|m| seqs.contains(m.seq)).for_each(|m| visit(m));
    }
    Ok(())
}

/// Ranges that cover the numbers, none longer than a stretch. Those close together are read in one go.
fn pieces(seqs: &SeqSet, stretch: u64) -> Vec<RangeInclusive<u64>> {
    let mut pieces: Vec<RangeInclusive<u64>> = Vec::new();
    for range in seqs.ranges() {
        let mut first = *range.start();
        if let Some(last) = pieces.last_mut()
            && *range.end() - *last.start() < stretch
        {
            *last = *last.start()..=*range.end();
            continue;
        }
        while *range.end() - first >= stretch {
            pieces.push(first..=first + stretch - 1);
            first += stretch;
        }
        pieces.push(first..=*range.end());
    }
    pieces
}

/// Whether the message of this name is still there. One that cannot be read at the moment is.
pub(crate) async fn is_there(state: &impl CurrentState, name: RecordName) -> Result<bool> {
    let seq = name.seq;
    if !(state.profile().expired + 1..=state.last_seq()).contains(&seq)
        || state.vacant().contains(seq)
    {
        return Ok(false);
    }
    // After the whole conversation was removed, another message may have the number.
    if let Some(known) = state.known_name(seq) {
        return Ok(known == name);
    }
    let result = state.read(ReadQuery::Seqs(seq..=seq)).await?;
    if let Some(found) = result.messages.first() {
        return Ok(found.name == name);
    }
    let mut unread = result.skipped.iter().filter_map(|finding| finding.seqs);
    Ok(unread.any(|(first, last)| (first..=last).contains(&seq)))
}

/// Refuses messages that are not new if they would take the place of others.
pub(crate) async fn check_room(state: &impl CurrentState, more: usize) -> Result<()> {
    let most = state.retention().most();
    if state.shown_count().await?.saturating_add(more as u64) <= most {
        return Ok(());
    }
    Err(Error::InvalidMessage {
        reason: "the conversation's limit leaves no room for so many: raise it first",
    })
}

/// What a rule says whose futures never wait, as those of a file store under its lock.
pub(crate) fn ready<T>(rule: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(rule).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Error::ShuttingDown),
    }
}
