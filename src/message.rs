//! One thing said, by whom and when.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroize;

use crate::error::{Error, Result};

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChatRole {
    /// The person.
    User,
    /// The language model.
    Assistant,
    /// The host: an announcement or a note.
    System,
    /// The result of a tool call.
    Tool,
}

impl ChatRole {
    /// The four roles.
    pub const ALL: [Self; 4] = [Self::User, Self::Assistant, Self::System, Self::Tool];

    /// Serializes the lower-case name. Records on disk have a capital.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
    pub(crate) fn write_lower_case<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }

    /// The role's lower-case name, as in file names and model requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
        }
    }
}

/// The name in its sentence case, as in records and one-text prompts.
impl fmt::Display for ChatRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::System => "System",
            Self::Tool => "Tool",
        })
    }
}

/// Accepts any letter case.
impl std::str::FromStr for ChatRole {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|role| role.as_str().eq_ignore_ascii_case(text)).ok_or(
            Error::InvalidMessage { reason: "the role must be user, assistant, system or tool" },
        )
    }
}

/// A function that the model asked the host to run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCall {
    /// Links the call with its result; empty where the model gave none.
    pub id: String,
    /// The function.
    pub name: String,
    /// Its arguments, nested at most 64 deep.
    pub arguments: serde_json::Value,
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall").finish_non_exhaustive()
    }
}

/// The metadata of a tool's result that names the function.
pub const TOOL: &str = "tool";
/// The metadata of an answer that is only a part of one.
pub(crate) const CUT_OFF: &str = "cutOff";
/// The metadata of a message that another system wrote.
pub const IMPORTED_FROM: &str = "importedFrom";
/// The metadata of a message that came back from a snapshot: its id and the number it had, with a colon between them.
pub const RESTORED_FROM: &str = "restoredFrom";
/// The metadata of a message that says from when on it is no context any more.
pub const EXPIRES_AT: &str = "expiresAt";
/// The metadata of a restored message that says when it was said.
pub(crate) const SAID_AT: &str = "saidAt";
/// The metadata of a message whose words were moved to an artifact: its id. It goes with the message.
pub const ARTIFACT: &str = "artifact";
/// The metadata of an answer that says how many tokens its prompts took, and itself.
pub(crate) const PROMPT_TOKENS: &str = "promptTokens";
pub(crate) const ANSWER_TOKENS: &str = "answerTokens";
/// The metadata of a restored message that names the thread in which it was said.
pub(crate) const SAID_IN: &str = "saidIn";

/// A message of a conversation. `Debug` shows its shape but never its words, and dropping it wipes them from memory.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Who speaks.
    pub role: ChatRole,
    /// The words.
    pub content: String,
    /// When it was said, to the nanosecond.
    #[serde(
        rename = "timestampUtc",
        serialize_with = "write_timestamp",
        deserialize_with = "read_timestamp"
    )]
    pub timestamp: Timestamp,
    /// The host's own notes. `speaker` is shown to the model, `confidence` (0 to 1) can keep a doubtful transcript out
    /// of later prompts, `cutOff` marks part of an answer, `tool` names the function of a result, `importedFrom` says
    /// which record of which system it was, `restoredFrom` which message of which snapshot, which was `saidAt` then and
    /// `saidIn` that thread; past what `expiresAt` says it is no context; `artifact` names the artifact that a long result
    /// was moved to, `promptTokens` and `answerTokens` what an answer took. `device`, `lang` and `discordMessageId` are the
    /// customary others.
    #[serde(serialize_with = "write_metadata", deserialize_with = "read_metadata", default)]
    pub metadata: BTreeMap<String, String>,
    /// Functions that an assistant message calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The thread within the conversation, where the host has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The speaker's offset from UTC at that time, in minutes east, so that a rendered time never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_minutes: Option<i16>,
}

impl ChatMessage {
    /// A message said at a local time, whose offset from UTC is kept.
    pub fn new(role: ChatRole, content: impl Into<String>, now: &Zoned) -> Self {
        let mut message = Self::at(role, content, now.timestamp());
        message.offset_minutes = offset_minutes(now);
        message
    }

    /// A message said at a moment whose local time is not known; it is shown in UTC.
    pub fn at(role: ChatRole, content: impl Into<String>, timestamp: Timestamp) -> Self {
        Self {
            role,
            content: content.into(),
            timestamp,
            metadata: BTreeMap::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            thread_id: None,
            offset_minutes: None,
        }
    }

    /// Adds or replaces one metadata entry.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Who spoke, where the host knows.
    pub fn speaker(&self) -> Option<&str> {
        self.metadata.get("speaker").map(String::as_str)
    }

    /// How certain the transcript is, 0 to 1, where the host says.
    pub fn confidence(&self) -> Option<f64> {
        self.metadata.get("confidence")?.trim().parse().ok().filter(|c| (0.0..=1.0).contains(c))
    }

    /// Why only a part of the answer is here, if it is only a part: it was `interrupted`, it `failed`, or it reached
    /// its greatest `length`.
    pub fn cut_off(&self) -> Option<&str> {
        self.metadata.get(CUT_OFF).map(String::as_str)
    }

    /// Whether another system wrote it.
    pub(crate) fn is_imported(&self) -> bool {
        self.metadata.contains_key(IMPORTED_FROM)
    }

    /// The snapshot that it was restored from, and the number that it had in it.
    pub fn restored_from(&self) -> Option<(&str, u64)> {
        let (snapshot, seq) = self.metadata.get(RESTORED_FROM)?.rsplit_once(':')?;
        Some((snapshot, seq.parse().ok()?))
    }

    /// When it was said: its timestamp, but for a restored message, which says so itself.
    pub fn said_at(&self) -> Timestamp {
        let restored = || self.metadata.get(SAID_AT)?.parse().ok();
        restored().unwrap_or(self.timestamp)
    }

    /// Whether it is no context any more at that moment, as its metadata `expiresAt` says.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        let expiry = self.metadata.get(EXPIRES_AT).and_then(|at| at.parse::<Timestamp>().ok());
        expiry.is_some_and(|expiry| expiry < now)
    }

    /// The artifact that its words were moved to, if they were.
    pub fn moved_to(&self) -> Option<&str> {
        self.metadata.get(ARTIFACT).map(String::as_str)
    }

    /// How many tokens an answer took, with its prompts, as far as the server said.
    pub fn tokens_spent(&self) -> u64 {
        let counted = |name| self.metadata.get(name).and_then(|n: &String| n.parse::<u64>().ok());
        [PROMPT_TOKENS, ANSWER_TOKENS].into_iter().filter_map(counted).fold(0, u64::saturating_add)
    }

    /// Whether a new exchange starts here: replies and tool results belong to the exchange before them.
    pub fn starts_exchange(&self) -> bool {
        matches!(self.role, ChatRole::User | ChatRole::System)
    }
}

/// How far local time is ahead of UTC at a moment, in minutes.
pub(crate) fn offset_minutes(now: &Zoned) -> Option<i16> {
    i16::try_from(now.offset().seconds() / 60).ok()
}

impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatMessage")
            .field("role", &self.role)
            .field("timestamp", &self.timestamp)
            .field("content_bytes", &self.content.len())
            .finish_non_exhaustive()
    }
}

impl Drop for ChatMessage {
    fn drop(&mut self) {
        self.content.zeroize();
        self.metadata.values_mut().for_each(Zeroize::zeroize);
        for call in &mut self.tool_calls {
            wipe(&mut call.arguments);
        }
    }
}

fn wipe(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => text.zeroize(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(wipe),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(wipe),
        _ => {}
    }
}

fn write_timestamp<S: Serializer>(timestamp: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    let nanos = timestamp.subsec_nanosecond();
    let digits = match nanos {
        n if n % 1_000_000 == 0 => 3,
        n if n % 1_000 == 0 => 6,
        _ => 9,
    };
    to.collect_str(&format_args!("{timestamp:.digits$}"))
}

fn read_timestamp<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    from.deserialize_str(Moment)
}

/// Reads a timestamp without a copy of its text.
struct Moment;

impl serde::de::Visitor<'_> for Moment {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(|_| E::custom("not a timestamp"))
    }
}

fn write_metadata<S: Serializer>(
    metadata: &BTreeMap<String, String>,
    to: S,
) -> Result<S::Ok, S::Error> {
    (!metadata.is_empty()).then_some(metadata).serialize(to)
}

fn read_metadata<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
