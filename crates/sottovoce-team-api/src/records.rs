//! Conversations, their records and their artifacts

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::hex::{Id, Rid};
use crate::people::Level;
use crate::sealed::Sealed;

/// What a record is for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A sealed message.
    Message,
    /// Anything else about a conversation that is sealed: its title, its settings, a snapshot.
    Setting,
    /// A forgetting: it names the records whose contents the server deletes.
    Forgetting,
}

/// A record that a client appends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRecord {
    /// Its identifier. A record that the conversation has already keeps its position and its contents.
    pub rid: Rid,
    /// What it is.
    pub kind: Kind,
    /// Its sealed contents: at least one byte, except for a forgetting.
    #[serde(default)]
    pub sealed: Sealed,
    /// The records that a forgetting names. Those that the conversation does not have yet cannot be appended later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgets: Vec<Rid>,
}

/// Appends records to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// The records, in order; none twice.
    pub records: Vec<NewRecord>,
}

/// The records are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appended {
    /// The position of each record of the request.
    pub positions: Vec<u64>,
    /// The conversation's last position.
    pub last: u64,
}

/// A record as a member receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its position, from 1. A conversation's positions have no holes.
    pub pos: u64,
    /// Its identifier.
    pub rid: Rid,
    /// The device that appended it, as the server knows it by its token.
    pub device: Id,
    /// What it is.
    pub kind: Kind,
    /// Its sealed contents. Absent if it was forgotten, and from a forgetting without contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// The records that a forgetting names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgets: Vec<Rid>,
    /// When the server stored it, by the server's clock.
    pub at: Timestamp,
}

/// Records of a conversation in the order of their positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// The conversation's last position.
    pub last: u64,
}

/// A conversation that was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewConversation {
    /// Its identifier.
    pub id: Id,
}

/// A conversation as a member sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its identifier.
    pub id: Id,
    /// Its last position.
    pub last: u64,
    /// The bytes of its records and artifacts.
    pub bytes: u64,
    /// When it was created.
    pub created: Timestamp,
    /// When the server stored its last record; when it was created if it has none.
    pub changed: Timestamp,
    /// What the caller may do with it. Absent for an administrator without a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
}

/// Conversations, sorted by identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationList {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// A digest of all that the caller may read and how far it goes, to wait for changes of it.
    pub seen: Id,
}

/// A piece of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its identifier.
    pub id: Id,
    /// How many sealed bytes it has.
    pub bytes: u64,
}

/// One line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportLine {
    /// A conversation, whose records and artifacts follow.
    Conversation(Conversation),
    /// A record of the conversation above.
    Record(Record),
    /// An artifact of the conversation above. Its bytes are read at its own path.
    Artifact(Artifact),
    /// The last line. A reply without it is incomplete.
    End(u64),
}
