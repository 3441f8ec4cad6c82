//! Appending messages.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::name::{NameTime, RecordName};
use crate::store::record::validation::{Limits, TimestampPolicy, ValidMessage};
use crate::store::rules::StoreBackend;
use crate::store::rules::backend_state::BackendState;
use crate::store::rules::batch::Batch;
use crate::store::rules::current_state::is_there;
use crate::store::rules::limits::{expire, trim};
use crate::store::rules::view::{View, retried};

/// How many messages one batch adds, so that others get their turn in between.
const TOGETHER: usize = 4096;

pub(crate) async fn append(
    store: &(impl StoreBackend + ?Sized),
    messages: Vec<ChatMessage>,
) -> Result<Vec<Arc<StoredMessage>>> {
    let messages = validated(store, messages)?;
    let total = messages.len();
    let mut stored = Vec::with_capacity(total);
    for together in messages.chunks(TOGETHER) {
        match retried!(append_once(store, together)) {
            Ok(mut added) => stored.append(&mut added),
            Err(error) => return Err(Error::partial(stored.len(), total, error)),
        }
    }
    trim(store).await;
    Ok(stored)
}

async fn append_once(
    store: &(impl StoreBackend + ?Sized),
    messages: &[ValidMessage],
) -> Result<Vec<Arc<StoredMessage>>> {
    let view = expire(store).await?;
    let stored = numbered(store, &view, messages)?;
    store.commit(Batch::new(&view.state).append(stored.iter().cloned())).await?;
    Ok(stored)
}

pub(crate) async fn append_answers(
    store: &(impl StoreBackend + ?Sized),
    answers: Vec<ChatMessage>,
    answered: &StoredMessage,
) -> Result<Vec<Arc<StoredMessage>>> {
    if *answered.scope != **store.scope() {
        return Err(Error::OtherScope);
    }
    let answers = validated(store, answers)?;
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    let stored = retried!(append_answers_once(store, &answers, answered))?;
    trim(store).await;
    Ok(stored)
}

async fn append_answers_once(
    store: &(impl StoreBackend + ?Sized),
    answers: &[ValidMessage],
    answered: &StoredMessage,
) -> Result<Vec<Arc<StoredMessage>>> {
    let mut view = expire(store).await?;
    if !is_there(&BackendState { store, view: &view }, answered.name).await? {
        return Err(Error::UtteranceForgotten);
    }
    let stored = numbered(store, &view, answers)?;
    let is_cleared = view.profile.cleared.is_some_and(|cleared| answered.seq <= cleared.seq);
    let batch = view.change(|profile| {
        if is_cleared {
            profile.prune(stored.iter().map(|stored| stored.seq));
        }
    })?;
    store.commit(batch.append(stored.iter().cloned())).await?;
    Ok(stored)
}

/// The messages as they may be stored.
///
/// # Errors
/// Those of the first that may not.
pub(crate) fn validated(
    store: &(impl StoreBackend + ?Sized),
    messages: Vec<ChatMessage>,
) -> Result<Vec<ValidMessage>> {
    let policy = store.policy();
    let limits = Limits {
        clock: store.clock(),
        lock_timeout: Duration::ZERO,
        max_message_bytes: policy.max_message_bytes,
        redactor: store.redactor(),
    };
    ValidMessage::all(messages, &limits)
}

/// The messages under the next numbers, none placed before the newest that is stored.
pub(crate) fn numbered(
    store: &(impl StoreBackend + ?Sized),
    view: &View,
    messages: &[ValidMessage],
) -> Result<Vec<Arc<StoredMessage>>> {
    let mut newest = view.state.newest.map_or(Ok(NameTime::MIN), NameTime::try_from)?;
    let mut seq = view.state.last_seq;
    let mut stored = Vec::with_capacity(messages.len());
    for valid in messages {
        seq = seq
            .checked_add(1)
            .ok_or(Error::InvalidMessage { reason: "the conversation's numbers are used up" })?;
        newest = TimestampPolicy::Newest.date(valid.time, newest);
        let name = RecordName { time: newest, seq, kind: valid.message.role.into() };
        stored.push(Arc::new(StoredMessage::new(store.scope(), name, valid.message.clone())));
    }
    Ok(stored)
}
