//! Messages: what was said, by whom and when.

pub(crate) mod hidden;
pub(crate) mod quote;
pub(crate) mod redact;
pub(crate) mod source;
pub(crate) mod texts;

use std::collections::BTreeMap;
use std::fmt;

use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroize;

pub use source::{CAME_FROM, Source};

use crate::error::{Error, Result};

/// The role of a message's speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChatRole {
    /// The user.
    User,
    /// The language model.
    Assistant,
    /// The host, for an announcement or a note.
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
    /// Links the call to its result; empty if the model gave none.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments, nested at most 64 deep.
    pub arguments: serde_json::Value,
}

debug_shows!(ToolCall);

/// Metadata key of a tool result: the function's name.
pub const TOOL: &str = "tool";
/// Metadata key of a message that may be a program's own task rather than a person's words: why.
pub const ASIDE: &str = "aside";
/// Metadata key of an incomplete answer: why it is incomplete.
pub(crate) const CUT_OFF: &str = "cutOff";
/// Metadata key of an imported message: its system and record.
pub const IMPORTED_FROM: &str = "importedFrom";
/// Metadata key of a message restored from a snapshot: the snapshot's id and the message's number in it, separated by
/// a colon.
pub const RESTORED_FROM: &str = "restoredFrom";
/// Metadata key: the time from which the message is no longer context.
pub const EXPIRES_AT: &str = "expiresAt";
/// Metadata key of a restored message: when it was said.
pub(crate) const SAID_AT: &str = "saidAt";
/// Metadata key of a message whose words were moved to an artifact: the artifact's id. The artifact is deleted with
/// the message.
pub const ARTIFACT: &str = "artifact";
/// The metadata key of a message that records a search. The message holds the query, so no search returns it.
pub const SEARCH_NOTE: &str = "searchFor";
/// Metadata keys of an answer: how many tokens its prompts and the answer took.
pub(crate) const PROMPT_TOKENS: &str = "promptTokens";
pub(crate) const ANSWER_TOKENS: &str = "answerTokens";
/// Metadata keys of an answer: how many of the prompt's tokens the server had in its cache, after how many milliseconds
/// the answer began, and how many earlier messages recall brought into the prompt.
pub const CACHED_TOKENS: &str = "cachedTokens";
/// See [`CACHED_TOKENS`].
pub const FIRST_WORD_MS: &str = "firstWordMs";
/// See [`CACHED_TOKENS`].
pub const RECALLED: &str = "recalled";
/// Metadata key of a restored message: the thread in which it was said.
pub(crate) const SAID_IN: &str = "saidIn";

/// A message of a conversation. `Debug` shows its shape but never its words, and dropping it wipes them from memory.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Who speaks.
    pub role: ChatRole,
    /// The text.
    pub content: String,
    /// When it was said, to the nanosecond.
    #[serde(
        rename = "timestampUtc",
        serialize_with = "write_timestamp",
        deserialize_with = "read_timestamp"
    )]
    pub timestamp: Timestamp,
    /// Key-value pairs. `speaker` is shown to the model; `confidence` (0 to 1) can keep a doubtful transcript out of
    /// later prompts; `cutOff` marks an incomplete answer; `tool` names a result's function; `cameFrom` says
    /// where the words come from; `importedFrom` gives the
    /// system and record of an imported message; `aside` says why it may be a program's own task; `restoredFrom` gives the
    /// snapshot and number of a restored one, with `saidAt` and `saidIn` for its time and thread; `expiresAt` ends its time in the context; `artifact` names the
    /// artifact with a long result; `promptTokens`, `cachedTokens` and `answerTokens` count an answer's tokens, `firstWordMs`
    /// tells after how many milliseconds it began, and `recalled` how many messages recall brought. Hosts usually add
    /// `device`, `lang` and `discordMessageId`.
    #[serde(serialize_with = "write_metadata", deserialize_with = "read_metadata", default)]
    pub metadata: BTreeMap<String, String>,
    /// Functions that an assistant message calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The thread in the conversation, if the host has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The speaker's offset from UTC at that time, in minutes east, so that a rendered time never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_minutes: Option<i16>,
}

impl ChatMessage {
    /// A message said at a local time. Keeps the offset from UTC.
    pub fn new(role: ChatRole, content: impl Into<String>, now: &Zoned) -> Self {
        let mut message = Self::at(role, content, now.timestamp());
        message.offset_minutes = offset_minutes(now);
        message
    }

    /// A message whose local time is unknown. It is shown in UTC.
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

    /// The speaker's name, if the host knows it.
    pub fn speaker(&self) -> Option<&str> {
        self.metadata.get("speaker").map(String::as_str)
    }

    /// The transcript's confidence from 0 to 1, if the host knows it.
    pub(crate) fn confidence(&self) -> Option<f64> {
        self.metadata.get("confidence")?.trim().parse().ok().filter(|c| (0.0..=1.0).contains(c))
    }

    /// Why an answer is incomplete: `interrupted`, `failed`, or `length` if it reached the length limit. `None` if it
    /// is complete.
    pub fn cut_off(&self) -> Option<&str> {
        self.metadata.get(CUT_OFF).map(String::as_str)
    }

    /// Why it may be a program's own task rather than a person's words, if it may.
    pub fn aside(&self) -> Option<&str> {
        self.metadata.get(ASIDE).map(String::as_str)
    }

    /// Marks it, if there is a reason, as what may be a program's own task rather than a person's words.
    #[must_use]
    pub fn set_aside(mut self, why: Option<&str>) -> Self {
        self.metadata.extend(why.map(|why| (ASIDE.to_owned(), why.to_owned())));
        self
    }

    /// Puts it into the turn of an utterance: into its thread, and aside if that is.
    #[must_use]
    pub fn in_turn_of(mut self, utterance: &Self) -> Self {
        self.thread_id.clone_from(&utterance.thread_id);
        self.set_aside(utterance.aside())
    }

    /// Whether prompts may bring it in by themselves, as history or by recall. Whoever asks for it gets it all the same.
    pub(crate) fn comes_unasked(&self) -> bool {
        self.aside().is_none()
    }

    /// Whether it was imported from another system.
    pub(crate) fn is_imported(&self) -> bool {
        self.metadata.contains_key(IMPORTED_FROM)
    }

    /// The snapshot from which it was restored, and its number there.
    pub fn restored_from(&self) -> Option<(&str, u64)> {
        let (snapshot, seq) = self.metadata.get(RESTORED_FROM)?.rsplit_once(':')?;
        Some((snapshot, seq.parse().ok()?))
    }

    /// When it was said: its timestamp, or the original time of a restored message.
    pub fn said_at(&self) -> Timestamp {
        let restored = || self.metadata.get(SAID_AT)?.parse().ok();
        restored().unwrap_or(self.timestamp)
    }

    /// Whether its `expiresAt` has passed by this time, so that it is no longer context.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        let expiry = self.metadata.get(EXPIRES_AT).and_then(|at| at.parse::<Timestamp>().ok());
        expiry.is_some_and(|expiry| expiry < now)
    }

    /// The artifact to which its text was moved, if it was.
    pub fn moved_to(&self) -> Option<&str> {
        self.metadata.get(ARTIFACT).map(String::as_str)
    }

    /// How many tokens an answer and its prompts took, as far as the server reported it.
    pub(crate) fn tokens_spent(&self) -> u64 {
        let counted = |name| self.metadata.get(name).and_then(|n: &String| n.parse::<u64>().ok());
        [PROMPT_TOKENS, ANSWER_TOKENS].into_iter().filter_map(counted).fold(0, u64::saturating_add)
    }

    /// Whether a new exchange starts here: replies and tool results belong to the exchange before them.
    pub(crate) fn starts_exchange(&self) -> bool {
        matches!(self.role, ChatRole::User | ChatRole::System)
    }
}

/// The local time's offset from UTC in minutes.
pub(crate) fn offset_minutes(now: &Zoned) -> Option<i16> {
    i16::try_from(now.offset().seconds() / 60).ok()
}

debug_shows!(ChatMessage as it: role, timestamp, content_bytes = it.content.len());

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

/// Parses a timestamp without copying its text.
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
