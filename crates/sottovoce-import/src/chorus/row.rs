//! A message of chorus, from its database or from a saved session.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sottovoce::import::ImportedMessage;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{ChatMessage, ChatRole};

use crate::fields::calls;
use crate::system::CHORUS;

/// The metadata key of a message's id on Discord.
const DISCORD_MESSAGE_ID: &str = "discordMessageId";
/// The name of this format in reports.
const FORM: &str = "message";

/// The fields of a message. The names are those in a session's file.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) id: i64,
    #[serde(rename = "agent_name")]
    pub(super) agent: String,
    #[serde(rename = "thread_id")]
    pub(super) thread: Option<i64>,
    pub(super) role: String,
    pub(super) content: Option<String>,
    pub(super) tool_calls: Option<Value>,
    pub(super) tool_call_id: Option<String>,
    pub(super) timestamp: String,
    pub(super) discord_message_id: Option<i64>,
}

/// The name of a message in records and reports.
pub(super) fn name(id: i64) -> String {
    format!("messages/{id}")
}

impl Row {
    /// Reads the message. Its Discord id does not identify it, because chorus may add it later.
    pub(super) fn read(self) -> Result<ImportedMessage, RefusalReason> {
        let role = match self.role.as_str() {
            "user" => ChatRole::User,
            "assistant" | "tool_use" => ChatRole::Assistant,
            "system" => ChatRole::System,
            "tool" | "tool_result" => ChatRole::Tool,
            _ => return Err(Corrupt("its role is not one that chorus writes")),
        };
        let time = moment(&self.timestamp).ok_or(Corrupt("its timestamp is not a time"))?;
        let mut message = ChatMessage::at(role, self.content.unwrap_or_default(), time);
        message.tool_calls = calls::read(self.tool_calls.unwrap_or(Value::Null), role)?;
        message.tool_call_id = self.tool_call_id.filter(|_| role == ChatRole::Tool);
        message.thread_id = self.thread.map(|thread| thread.to_string());
        let imported = ImportedMessage::new(CHORUS, &name(self.id), FORM, message)?;
        let discord = self.discord_message_id.map(|id| id.to_string());
        Ok(imported.with_metadata(DISCORD_MESSAGE_ID, discord))
    }
}

/// A time as Python writes it, with an offset from UTC.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row() -> Row {
        Row {
            id: 7,
            agent: "mira".into(),
            thread: Some(3),
            role: "user".into(),
            content: Some("x".into()),
            tool_calls: None,
            tool_call_id: None,
            timestamp: "2025-08-24T05:43:19+00:00".into(),
            discord_message_id: None,
        }
    }

    #[test]
    fn a_row_says_who_spoke_and_which_call_it_answers() {
        for (role, expected) in [
            ("user", ChatRole::User),
            ("assistant", ChatRole::Assistant),
            ("tool_use", ChatRole::Assistant),
            ("tool", ChatRole::Tool),
            ("tool_result", ChatRole::Tool),
            ("system", ChatRole::System),
        ] {
            let tool_call_id = Some("c".to_owned());
            let read = Row { role: role.into(), tool_call_id, ..row() }.read().unwrap();
            assert_eq!(read.message.role, expected);
            assert_eq!(read.message.tool_call_id.is_some(), expected == ChatRole::Tool);
        }
        for role in ["", "User", "developer"] {
            assert!(Row { role: role.into(), ..row() }.read().is_err());
        }
        let calls = Some(json!([{"name": "f"}]));
        assert!(Row { tool_calls: calls, ..row() }.read().is_err());
        for wrong in ["", "2025-08-24T05:43:19", "1756013462", "2025-08-24T25:00:00+00:00"] {
            assert!(Row { timestamp: wrong.into(), ..row() }.read().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_discord_calls_it_does_not_tell_which_message_it_is() {
        let plain = row().read().unwrap();
        let known = Row { discord_message_id: Some(16), ..row() }.read().unwrap();
        assert_eq!(plain.origin(), known.origin());
        assert_eq!(known.message.metadata["discordMessageId"], "16");
        for other in [Row { id: 8, ..row() }, Row { thread: None, ..row() }] {
            assert_ne!(other.read().unwrap().origin(), plain.origin());
        }
    }
}
