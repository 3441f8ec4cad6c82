//! What was seen of the named conversations, so that a listing opens only those that have changed since.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::PersonaConversation;

/// Each by its id, as it stood when its head had those bytes; `None` for one that is no context.
#[derive(Default)]
pub(super) struct Seen(Mutex<Known>);

type Known = HashMap<String, (Vec<u8>, Option<PersonaConversation>)>;

impl Seen {
    /// What is known of it, unless its head is another one by now.
    pub(super) fn get(&self, id: &str, head: &[u8]) -> Option<Option<PersonaConversation>> {
        let known = self.known();
        let (of, context) = known.get(id)?;
        (of == head).then(|| context.clone())
    }

    /// Notes how it stood, or stood a moment after it had that head.
    pub(super) fn put(&self, id: String, head: Vec<u8>, context: Option<PersonaConversation>) {
        self.known().insert(id, (head, context));
    }

    /// Lets go of those that are not among these.
    pub(super) fn keep(&self, ids: &HashSet<&str>) {
        self.known().retain(|id, _| ids.contains(id.as_str()));
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
