//! Messages that are the same in everything.

use std::collections::HashMap;

use crate::import::{ForeignMessage, RefusalReason};
use crate::message::ChatMessage;
use crate::store::record::import_digest::Origin;

/// Counts messages that are the same in everything, so that each of them is one.
#[derive(Debug, Default)]
pub(super) struct Twins(HashMap<Origin, usize>);

impl Twins {
    /// The message under that name; a second one that is the same in everything has `#2` behind it, and so on.
    pub(super) fn tell_apart(
        &mut self,
        system: &str,
        name: &str,
        form: &'static str,
        message: ChatMessage,
    ) -> Result<ForeignMessage, RefusalReason> {
        let first = ForeignMessage::new(system, name, form, message)?;
        let before = self.0.entry(first.origin).or_default();
        *before += 1;
        if *before == 1 {
            return Ok(first);
        }
        ForeignMessage::new(system, &format!("{name}#{before}"), form, first.message)
    }
}
