//! Unique names of contexts, and new ids, made from the time and random bits.

use jiff::Timestamp;

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

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A new id such as `context-mep92q9v-mkorf9`: the milliseconds since 1970 and about 31 random bits, both in base 36.
pub(super) fn fresh_id(what: &str, now: Timestamp) -> Result<String> {
    const CHANCES: u64 = 36_u64.pow(6);
    let chance = getrandom::u64().map_err(|_| Error::NoRandomness)? % CHANCES;
    let time = u64::try_from(now.as_millisecond()).unwrap_or(0);
    Ok(format!("{what}-{}-{}", base36(time, 8), base36(chance, 6)))
}

fn base36(mut number: u64, digits: usize) -> String {
    let mut text = Vec::new();
    while number > 0 || text.len() < digits {
        let digit = usize::try_from(number % 36).unwrap_or(0);
        text.push(DIGITS.get(digit).copied().unwrap_or(b'0'));
        number /= 36;
    }
    text.iter().rev().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_the_time_and_of_chance() {
        let now = "2025-08-24T05:31:01.123Z".parse().unwrap();
        let (one, other) = (fresh_id("context", now).unwrap(), fresh_id("context", now).unwrap());
        // Another system wrote this prefix at the same time.
        assert!(one.starts_with("context-mep92q9v-") && one.len() == 23, "{one}");
        assert_ne!(one, other);
    }
}
