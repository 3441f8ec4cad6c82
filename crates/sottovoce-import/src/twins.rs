//! Tells equal messages without ids apart.

use std::collections::HashMap;

use sottovoce::ChatMessage;
use sottovoce::import::{ImportedMessage, Origin, RefusalReason};

/// Counts equal messages, so that each is imported.
#[derive(Debug, Default)]
pub(crate) struct Twins(HashMap<Origin, usize>);

impl Twins {
    /// Names the message. A second equal one gets `#2` after its name, and so on.
    pub(crate) fn tell_apart(
        &mut self,
        system: &str,
        name: &str,
        form: &'static str,
        message: ChatMessage,
    ) -> Result<ImportedMessage, RefusalReason> {
        let first = ImportedMessage::new(system, name, form, message)?;
        let before = self.0.entry(first.origin()).or_default();
        *before += 1;
        if *before == 1 {
            return Ok(first);
        }
        ImportedMessage::new(system, &format!("{name}#{before}"), form, first.message)
    }
}
