//! A context as listings show it, and a cache of them, so that a listing opens only those that have changed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::store::read::state::ConversationState;
use crate::store::record::persona::AssignedPersona;

/// A context expires soon if less than this is left: 24 hours.
const WARNING: SignedDuration = SignedDuration::from_hours(24);

/// All contexts of a store.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PersonaConversations {
    /// The readable ones, in the order of the list.
    pub contexts: Vec<PersonaConversation>,
    /// Ids of conversations whose settings cannot be read, so that they may or may not be contexts. They are left
    /// alone.
    pub unreadable: Vec<String>,
}

/// A context at one moment. `Debug` shows no words.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct PersonaConversation {
    /// Its id. Its scope is [`Scope::Named`](crate::Scope::Named) with this id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its persona, with preset and expiry.
    pub assigned_persona: AssignedPersona,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last interaction: a message or a change.
    pub last_at: Timestamp,
    /// The time when it expires.
    pub expires_at: Timestamp,
    /// Whether it has expired.
    pub is_expired: bool,
    /// Whether it expires within 24 hours.
    pub expires_soon: bool,
    /// The number of messages.
    pub messages: u64,
}

impl PersonaConversation {
    pub(super) fn new(id: &str, standing: &ConversationState, now: Timestamp) -> Option<Self> {
        let profile = &standing.profile;
        let assigned_persona = profile.assigned_persona.clone()?;
        let created_at = profile.created_at.unwrap_or(assigned_persona.updated_at);
        let last_at = standing.last.max(Some(assigned_persona.updated_at)).unwrap_or(created_at);
        let expires_at = assigned_persona.expires_at(last_at);
        let context = Self {
            id: id.to_owned(),
            name: profile.title.clone().unwrap_or_else(|| id.to_owned()),
            created_at,
            last_at,
            expires_at,
            is_expired: false,
            expires_soon: false,
            messages: standing.messages,
            assigned_persona,
        };
        Some(context.at(now))
    }

    /// The same context at another moment.
    pub(super) fn at(self, now: Timestamp) -> Self {
        let left = self.expires_at.duration_since(now);
        let is_expired = left <= SignedDuration::ZERO;
        Self { is_expired, expires_soon: !is_expired && left <= WARNING, ..self }
    }

    /// Whether it is neither deleted nor expired.
    pub fn is_open(&self) -> bool {
        self.is_active() && !self.is_expired
    }

    /// Whether, in its current state, it had been deleted or had expired by `moment`.
    pub(super) fn is_over_at(&self, moment: Timestamp) -> bool {
        let over = self.assigned_persona.deleted_at.unwrap_or(self.expires_at).min(self.expires_at);
        over <= moment
    }

    /// Whether it was not deleted.
    pub fn is_active(&self) -> bool {
        self.assigned_persona.deleted_at.is_none()
    }
}

debug_shows!(PersonaConversation: id, assigned_persona, expires_at, messages);

/// For each id, its state when its head had these bytes; `None` for a conversation that is not a context.
#[derive(Default)]
pub(super) struct Seen(Mutex<Known>);

type Known = HashMap<String, (Vec<u8>, Option<PersonaConversation>)>;

impl Seen {
    /// The cached state, unless the head has changed.
    pub(super) fn get(&self, id: &str, head: &[u8]) -> Option<Option<PersonaConversation>> {
        let known = self.known();
        let (of, context) = known.get(id)?;
        (of == head).then(|| context.clone())
    }

    /// Caches the state that was read with this head, or a moment after it.
    pub(super) fn put(&self, id: String, head: Vec<u8>, context: Option<PersonaConversation>) {
        self.known().insert(id, (head, context));
    }

    /// Removes all entries except these.
    pub(super) fn keep(&self, ids: &HashSet<&str>) {
        self.known().retain(|id, _| ids.contains(id.as_str()));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
