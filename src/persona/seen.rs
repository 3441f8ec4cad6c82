//! A cache of the named conversations, so that a listing opens only those that have changed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::PersonaConversation;

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

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
