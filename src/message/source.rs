//! Where the words of a message come from.

use std::fmt;

use serde::de::value::{Error as Unread, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::{ChatMessage, ChatRole, IMPORTED_FROM, TOOL};

/// Metadata key: where the words come from, and after a blank the name of that, unless the rest of the message tells it.
pub const CAME_FROM: &str = "cameFrom";
/// What `importedFrom` says of a message that came from another device: this word, what it said there before, if
/// anything, and the origin.
pub(crate) const RECEIVED: &str = "received";
/// What a reference to an artifact begins with.
pub(crate) const SCHEME: &str = "artifact://";

/// Where words come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Source {
    /// Somebody spoke. The metadata may tell the device, the speaker and how well that was heard.
    Spoken,
    /// Somebody typed them.
    Typed,
    /// A program sent them that talks to a server of this one. Its name is that of its key.
    Client,
    /// A member of a team, or the member's assistant, said them. The name is the member's.
    Member,
    /// Another program kept them. Its name is the program's.
    Import,
    /// The assistant answered them.
    Assistant,
    /// A tool returned them. Its name is the function's.
    Tool,
    /// They stand in a document, or are the note about one.
    Document,
    /// The host noted them.
    Note,
    /// Nothing tells it: they were said before this was noted.
    Unknown,
}

impl Source {
    /// The source with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<Unread>::new(name)).ok()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl ChatMessage {
    /// Where its words come from, and the name of that, if it has one. The host or the store has set it, so that no words can
    /// claim to come from elsewhere.
    pub fn source(&self) -> (Source, &str) {
        let told = |key| self.metadata.get(key).map_or("", String::as_str);
        let came = told(CAME_FROM);
        let (from, name) = came.split_once(' ').unwrap_or((came, ""));
        let (system, _) = told(IMPORTED_FROM).rsplit_once(':').unwrap_or_default();
        let system = system.strip_prefix(RECEIVED).map_or(system, |rest| rest.trim_matches('/'));
        match (self.role, Source::parse(from)) {
            (ChatRole::Tool, _) => (Source::Tool, told(TOOL)),
            (_, Some(source)) => (source, name),
            (ChatRole::System, _) if self.content.contains(SCHEME) => (Source::Document, ""),
            (ChatRole::System, _) => (Source::Note, ""),
            _ if !system.is_empty() => (Source::Import, system),
            (ChatRole::Assistant, _) => (Source::Assistant, ""),
            _ if self.metadata.contains_key("device") || self.confidence().is_some() => {
                (Source::Spoken, "")
            }
            _ => (Source::Unknown, ""),
        }
    }

    /// The same in words: `spoken`, or `client named/kitchen`.
    pub fn source_in_words(&self) -> String {
        let (source, name) = self.source();
        format!("{source} {name}").trim_end().to_owned()
    }

    /// Notes where its words come from, with the name of that or nothing, whatever it said before.
    #[must_use]
    pub fn from_source(self, source: Source, name: &str) -> Self {
        self.with_metadata(CAME_FROM, format!("{source} {name}").trim_end())
    }

    /// Notes where its words come from, unless that is known.
    #[must_use]
    pub fn else_from(self, source: Source) -> Self {
        match self.source() {
            (Source::Unknown, _) => self.from_source(source, ""),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn said(role: ChatRole, metadata: &[(&str, &str)]) -> ChatMessage {
        let mut message = ChatMessage::at(role, "words", Timestamp::UNIX_EPOCH);
        let pairs = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        message.metadata.extend(pairs);
        message
    }

    #[test]
    fn what_old_messages_tell_by_themselves_is_not_stored_again() {
        use ChatRole::{Assistant, System, Tool, User};
        for (role, metadata, told) in [
            (User, &[][..], "unknown"),
            (User, &[("device", "kitchen")], "spoken"),
            (User, &[("confidence", "0.4")], "spoken"),
            (User, &[("importedFrom", "elara:0f")], "import elara"),
            (User, &[("importedFrom", "received:0f")], "unknown"),
            (User, &[("importedFrom", "received/elara:0f")], "import elara"),
            (Assistant, &[], "assistant"),
            (Assistant, &[("importedFrom", "chorus:0f")], "import chorus"),
            (System, &[("importedFrom", "chorus:0f")], "note"),
            (Tool, &[("tool", "get_weather")], "tool get_weather"),
            (User, &[("cameFrom", "client named/hall"), ("device", "x")], "client named/hall"),
        ] {
            assert_eq!(said(role, metadata).source_in_words(), told, "{metadata:?}");
        }
        let mut note = said(System, &[]);
        note.content = "Added the lease: artifact://1".to_owned();
        assert_eq!(note.source_in_words(), "document");
    }

    #[test]
    fn words_cannot_claim_to_come_from_elsewhere() {
        let tool = said(ChatRole::Tool, &[(CAME_FROM, "spoken")]);
        assert_eq!(tool.source().0, Source::Tool);
        let client = said(ChatRole::User, &[(CAME_FROM, "spoken")]).from_source(Source::Client, "");
        assert_eq!(client.source_in_words(), "client");
        // A word that nobody sets is no source.
        assert_eq!(said(ChatRole::User, &[(CAME_FROM, "telegram")]).source().0, Source::Unknown);
    }

    #[test]
    fn what_is_known_is_not_noted_again() {
        let typed = said(ChatRole::User, &[]).else_from(Source::Typed);
        assert_eq!(typed.source_in_words(), "typed");
        let spoken = said(ChatRole::User, &[("device", "hall")]).else_from(Source::Typed);
        assert!(!spoken.metadata.contains_key(CAME_FROM));
    }
}
