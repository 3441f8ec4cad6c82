//! A message of a context.

use sottovoce::import::ImportedMessage;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{ChatMessage, ChatRole};

use crate::fields::notes::MESSAGE_ID;
use crate::fields::time;
use crate::sqlite::{text, value};
use crate::system::LLM_GENERATOR;
use crate::twins::Twins;

/// The name of a record that cannot be taken, and why.
pub(super) type Refused = (String, RefusalReason);

/// The name of this format in reports.
const FORM: &str = "message";

/// A row with a context id.
pub(super) struct Message {
    pub(super) context: String,
    /// Its name in reports.
    pub(super) place: String,
    id: Option<String>,
    /// Role, content and time.
    said: Result<[String; 3], RefusalReason>,
}

/// Reads a row; `before` is the number of rows before it.
pub(super) fn parsed(row: &rusqlite::Row<'_>, before: usize) -> Result<Message, Refused> {
    let read = |at| value(row, at).and_then(text);
    let needed = |at, reason| read(at)?.ok_or(Corrupt(reason));
    // A message without an id is identified by what it says.
    let id = read(4).unwrap_or(None);
    let place = match &id {
        Some(id) => format!("conversations/{id}"),
        None => format!("conversations, row {}", before + 1),
    };
    let said = || {
        Ok([
            needed(1, "it has no role")?,
            needed(2, "it has no content")?,
            needed(3, "it has no created_at")?,
        ])
    };
    match needed(0, "it has no context_id") {
        Ok(context) => Ok(Message { context, place, id, said: said() }),
        Err(reason) => Err((place, reason)),
    }
}

impl Message {
    /// Reads the message. The system's token count is ignored: tokens are estimated anew.
    pub(super) fn read(self, twins: &mut Twins) -> Result<ImportedMessage, RefusalReason> {
        let [role, content, created_at] = self.said?;
        let role = match role.as_str() {
            "user" => ChatRole::User,
            "assistant" => ChatRole::Assistant,
            "system" => ChatRole::System,
            _ => return Err(Corrupt("its role is not user, assistant or system")),
        };
        let (at, offset) =
            time::parse(&created_at).ok_or(Corrupt("its created_at is not a time"))?;
        let mut message = ChatMessage::at(role, content, at);
        message.offset_minutes = offset;
        let name = match &self.id {
            Some(id) => format!("{}/{id}", self.context),
            None => self.context,
        };
        let message = twins.tell_apart(LLM_GENERATOR, &name, FORM, message)?;
        Ok(message.with_metadata(MESSAGE_ID, self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: Option<&str>, said: [&str; 3]) -> Message {
        let said = Ok(said.map(str::to_owned));
        Message { context: "c".into(), place: "p".into(), id: id.map(str::to_owned), said }
    }

    #[test]
    fn what_a_message_says_and_its_id_tell_which_it_is_and_twins_are_two() {
        let said = ["user", "x", "2025-08-24T05:43:19.000Z"];
        let mut twins = Twins::default();
        let first = message(Some("m"), said).read(&mut twins).unwrap();
        assert_eq!(first.message.metadata["messageId"], "m");
        for other in [
            message(Some("m"), said),
            message(Some("n"), said),
            message(None, said),
            message(Some("m"), ["assistant", "x", said[2]]),
            message(Some("m"), ["user", "", said[2]]),
            message(Some("m"), ["user", "x", "2025-08-24T05:43:19.001Z"]),
        ] {
            assert_ne!(other.read(&mut twins).unwrap().origin(), first.origin());
        }
        let again = message(Some("m"), said).read(&mut Twins::default()).unwrap();
        assert_eq!(again.origin(), first.origin());
        for wrong in [["tool", "x", said[2]], ["User", "x", said[2]], ["user", "x", "2025-08-24"]] {
            assert!(message(None, wrong).read(&mut twins).is_err());
        }
    }
}
