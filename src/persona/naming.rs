//! Unique names of contexts.

use super::{PersonaConversation, PersonaRegistry};
use crate::error::{Error, PersonaFailure, Result};
use crate::store::record::persona::check_name;

/// The highest number that is tried after a name.
const TRIED: usize = 10_000;

/// A name without the differences that people ignore.
fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

impl PersonaRegistry {
    /// The name for a new context: the given one. If `numbered` is set and another context has it, a number follows.
    ///
    /// # Errors
    /// [`PersonaFailure::ConversationNameTaken`] if another context that was not deleted has the name.
    pub(super) async fn name_for_new(&self, name: String, numbered: bool) -> Result<String> {
        let listed = self.list().await?.contexts;
        let taken = |name: &str| holder(&listed, name, None);
        let Some(other) = taken(&name) else { return Ok(name) };
        let free = (2..TRIED).map(|n| format!("{name} {n}")).find(|name| taken(name).is_none());
        match free.filter(|_| numbered) {
            Some(free) => check_name(&free).map(|()| free),
            None => Err(other),
        }
    }

    /// Fails if another context that was not deleted has the name. Called before renaming or restoring a context.
    ///
    /// # Errors
    /// [`PersonaFailure::ConversationNameTaken`], and those of [`list`](Self::list).
    pub async fn check_name_is_free(&self, name: &str, id: &str) -> Result<()> {
        match holder(&self.list().await?.contexts, name, Some(id)) {
            Some(other) => Err(other),
            None => Ok(()),
        }
    }

    /// The contexts with this name in any letter case. Open ones come first.
    pub(super) fn called<'a>(
        listed: &'a [PersonaConversation],
        name: &str,
    ) -> Result<Option<&'a PersonaConversation>> {
        let name = folded(name);
        let called: Vec<_> = listed.iter().filter(|c| folded(&c.name) == name).collect();
        let living: Vec<_> = called.iter().copied().filter(|c| c.is_open()).collect();
        match if living.is_empty() { called } else { living }.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            several => {
                let ids = several.iter().map(|context| context.id.clone()).collect();
                Err(PersonaFailure::AmbiguousName { ids }.into())
            }
        }
    }
}

/// The error for a name that another context has.
fn holder(listed: &[PersonaConversation], name: &str, own: Option<&str>) -> Option<Error> {
    let name = folded(name);
    let is_other = |context: &&PersonaConversation| {
        context.is_active() && own != Some(&*context.id) && folded(&context.name) == name
    };
    let id = listed.iter().find(is_other)?.id.clone();
    Some(PersonaFailure::ConversationNameTaken { id }.into())
}
