//! Reading what the limits show.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::backend::provided::View;
use crate::store::backend::{ReadQuery, StoreBackend};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::{Horizon, NewestEnd, Retention};
use crate::store::settings::profile::Profile;

/// The newest messages and what they tell about where the conversation begins.
pub(crate) struct Newest {
    pub(crate) result: ReadResult,
    is_whole: bool,
}

impl Newest {
    /// At least the newest `n`, and as many as these limits need.
    pub(crate) async fn of(
        store: &(impl StoreBackend + ?Sized),
        limits: Retention,
        n: usize,
    ) -> Result<Self> {
        let least = if limits.is_forever() { 0 } else { limits.needed().max(1) };
        let wanted = n.max(least);
        let result = store.read(ReadQuery::Tail(wanted)).await?;
        let is_whole = result.messages.len() < wanted;
        Ok(Self { result, is_whole })
    }

    /// From where on these limits show the conversation.
    pub(crate) fn horizon(&self, limits: Retention, now: Timestamp) -> Horizon {
        let messages = &self.result.messages;
        let unread = self.result.skipped.iter().filter(|finding| finding.seqs.is_some()).count();
        let last_said = messages.last().map(|last| last.ordered_at());
        let end = NewestEnd { is_whole: self.is_whole, last_said, unread };
        Horizon::within(limits, messages.iter(), end, || now).unwrap_or(Horizon::Nothing)
    }

    /// When the newest message was said.
    pub(crate) fn last_said(&self) -> Option<Timestamp> {
        self.result.messages.last().map(|last| last.ordered_at())
    }
}

pub(crate) async fn tail(store: &(impl StoreBackend + ?Sized), n: usize) -> Result<ReadResult> {
    let View { retention, .. } = View::of(store).await?;
    let newest = Newest::of(store, retention, n).await?;
    let horizon = newest.horizon(retention, now(store));
    let mut result = newest.result;
    keep_shown(&mut result.messages, horizon);
    let surplus = result.messages.len().saturating_sub(n);
    result.messages.drain(..surplus);
    Ok(result)
}

pub(crate) async fn read(
    store: &(impl StoreBackend + ?Sized),
    query: ReadQuery,
) -> Result<ReadResult> {
    let mut result = store.read(query).await?;
    let View { retention, .. } = View::of(store).await?;
    if !retention.is_forever() {
        let newest = Newest::of(store, retention, 0).await?;
        keep_shown(&mut result.messages, newest.horizon(retention, now(store)));
    }
    Ok(result)
}

/// The settings, without the summaries of a conversation that has expired.
pub(crate) async fn profile(store: &(impl StoreBackend + ?Sized)) -> Result<Profile> {
    let View { profile, retention, .. } = View::of(store).await?;
    if !profile.has_summaries() || retention.ttl_seconds.is_none() {
        return Ok(profile);
    }
    let newest = Newest::of(store, retention, 0).await?;
    Ok(match newest.horizon(retention, now(store)) {
        Horizon::Expired => profile.without_summaries(),
        _ => profile,
    })
}

pub(crate) fn now(store: &(impl StoreBackend + ?Sized)) -> Timestamp {
    store.clock().now().timestamp()
}

fn keep_shown(messages: &mut Vec<Arc<StoredMessage>>, horizon: Horizon) {
    messages.retain(|stored| horizon.shows(stored.name));
}
