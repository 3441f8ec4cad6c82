//! Chat completions: an object `{"messages":[{"role","content",…}]}`.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::metadata::TOOL;
use sottovoce::import::{ImportedConversation, ImportedMessage};
use sottovoce::{ChatMessage, ChatRole};

use crate::fields::{calls, json, words};
use crate::source::named;
use crate::system::OPENAI;
use crate::twins::Twins;

/// The name of this format in reports.
const FORM: &str = "completion";

#[derive(Deserialize)]
struct Fields<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
    name: Option<String>,
    tool_calls: Option<Value>,
    function_call: Option<Value>,
    tool_call_id: Option<String>,
}

/// Reads the conversation under the name `id`. Its first message gets the time of the file's last change.
pub(super) fn read(
    messages: &RawValue,
    id: &str,
    place: &str,
    modified: Timestamp,
) -> Result<ImportedConversation, RefusalReason> {
    let scope = named(id)?;
    let rows: Vec<&RawValue> = json::parse(messages.get(), "its messages are not a list")?;
    let mut conversation = ImportedConversation::new(scope, OPENAI);
    let messages = &mut conversation.messages;
    let mut twins = Twins::default();
    for (at, row) in (0..).zip(rows) {
        let place = format!("{place}/{}", at + 1);
        let said = modified.checked_add(SignedDuration::from_millis(at)).unwrap_or(modified);
        let message = message(row.get(), id, &mut twins).map(|(message, others)| {
            messages.passed_over.add("parts that are no text", others);
            message.map(|mut message| {
                message.message.timestamp = said;
                message
            })
        });
        if let Some(message) = message.transpose() {
            messages.push(place, message);
        }
    }
    Ok(conversation)
}

/// Reads a message, and the number of its parts that are not text. `None` if it has neither text nor calls. Its time
/// does not identify it, because files get touched.
fn message(
    json: &str,
    id: &str,
    twins: &mut Twins,
) -> Result<(Option<ImportedMessage>, usize), RefusalReason> {
    let fields: Fields<'_> = json::object(json, "its fields are not those of a message")?;
    let role = match fields.role.as_str() {
        "developer" => ChatRole::System,
        "function" => ChatRole::Tool,
        role => role.parse().map_err(|_| {
            Corrupt("its role is not developer, system, user, assistant, tool or function")
        })?,
    };
    let called = fields.tool_calls.or(fields.function_call);
    let tool_calls = calls::read(called.unwrap_or_default(), role)?;
    let (words, others) = match fields.content.map(RawValue::get) {
        None => (fields.refusal, 0),
        Some(json) if json.starts_with('[') => {
            let parts: Vec<&RawValue> = json::parse(json, "its content is not a list of parts")?;
            let (words, others) = words::joined(&parts);
            (Some(words).filter(|words| !words.is_empty() || others == 0), others)
        }
        Some(json) => {
            let words = serde_json::from_str(json);
            (Some(words.map_err(|_| Corrupt("its content is neither a text nor parts"))?), 0)
        }
    };
    if words.is_none() && tool_calls.is_empty() {
        return Ok((None, others.max(1)));
    }
    let mut message = ChatMessage::at(role, words.unwrap_or_default(), Timestamp::UNIX_EPOCH);
    message.tool_calls = tool_calls;
    message.tool_call_id = fields.tool_call_id.filter(|_| role == ChatRole::Tool);
    let name_of = if role == ChatRole::Tool { TOOL } else { "speaker" };
    let message = twins.tell_apart(OPENAI, id, FORM, message)?.with_metadata(name_of, fields.name);
    Ok((Some(message), others))
}
