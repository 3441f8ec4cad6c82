//! A turn of a conversation, as the caller hands it over.

use std::fmt;

/// Who wrote a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// A person.
    User,
    /// The assistant.
    Assistant,
    /// The system prompt or a notice.
    System,
    /// A tool's result.
    Tool,
}

impl Role {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Assistant => 1,
            Self::System => 2,
            Self::Tool => 3,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::User),
            1 => Some(Self::Assistant),
            2 => Some(Self::System),
            3 => Some(Self::Tool),
            _ => None,
        }
    }
}

/// One message of a conversation, borrowed from the caller.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The message's number. Results name turns by it.
    pub seq: u64,
    /// When it was said, in milliseconds since 1970 UTC.
    pub at: i64,
    /// The local day on which it was said, in days since 1970-01-01.
    pub day: i32,
    /// Who wrote it.
    pub role: Role,
    /// The speaker's name, in a home with several people.
    pub speaker: Option<&'a str>,
    /// The thread that it belongs to. A change of thread ends a session.
    pub thread: Option<&'a str>,
    /// The session, if the caller knows it. Otherwise pauses divide sessions.
    pub session: Option<u32>,
    /// What was said.
    pub text: &'a str,
    /// A description of what was shown with it, such as a photo's caption. Its words are found as if they were said.
    pub caption: Option<&'a str>,
}

impl<'a> Turn<'a> {
    /// A turn without a name, thread or caption.
    pub fn new(seq: u64, at: i64, day: i32, role: Role, text: &'a str) -> Self {
        Self { seq, at, day, role, speaker: None, thread: None, session: None, text, caption: None }
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("seq", &self.seq)
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}
