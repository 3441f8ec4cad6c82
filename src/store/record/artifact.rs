//! Artifacts: large data beside a conversation's messages, each sealed in a file of its own. Messages refer to one as
//! `artifact://id`. The settings list the artifacts, so that a deleted one does not come back with a backup.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

pub(crate) use crate::message::source::SCHEME;

/// The metadata key under which an artifact imported from Mimir keeps its old id. Messages imported from there still
/// use that id.
pub const MIMIR_ID: &str = "mimirId";
/// Length of an id in hexadecimal digits.
pub(crate) const ID_LENGTH: usize = 32;

/// The kind of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum ArtifactKind {
    /// A file's bytes.
    File,
    /// A folder: its tree, and the places of its files' contents.
    Folder,
    /// Results of a search.
    SearchResult,
    /// Output of a command.
    CommandOutput,
    /// A tool result that was too long for its message.
    ToolResult,
    /// Any other kind, named by the host.
    Other(String),
}

impl ArtifactKind {
    const NAMED: [Self; 5] =
        [Self::File, Self::Folder, Self::SearchResult, Self::CommandOutput, Self::ToolResult];

    /// The stored name: `file`, `folder`, `search_result`, `command_output`, `tool_result`, or the host's own.
    pub fn as_str(&self) -> &str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::SearchResult => "search_result",
            Self::CommandOutput => "command_output",
            Self::ToolResult => "tool_result",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for ArtifactKind {
    fn from(name: String) -> Self {
        let named = Self::NAMED.into_iter().find(|kind| kind.as_str() == name);
        named.unwrap_or(Self::Other(name))
    }
}

impl From<ArtifactKind> for String {
    fn from(kind: ArtifactKind) -> Self {
        kind.as_str().to_owned()
    }
}

/// The name in words.
impl fmt::Display for ArtifactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().replace('_', " "))
    }
}

/// An artifact's metadata, without its contents. `Debug` shows no words, and dropping it wipes them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Artifact {
    /// The id: 32 lower-case hexadecimal digits.
    pub id: String,
    /// The kind of contents.
    #[serde(rename = "type")]
    pub kind: ArtifactKind,
    /// The name, such as a file's path. It is never used as a path.
    pub name: String,
    /// The contents' media type.
    pub mime_type: String,
    /// The contents' size in bytes.
    pub size: u64,
    /// The contents' SHA-256, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The number of lines, if the contents are text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// When the artifact was added.
    pub created_at: Timestamp,
    /// The host's own key-value pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Artifact {
    /// The reference to use in a message: `artifact://` and the id.
    pub fn reference(&self) -> String {
        format!("{SCHEME}{}", self.id)
    }

    /// Whether the contents are text.
    pub fn is_text(&self) -> bool {
        self.lines.is_some()
    }

    /// A short description, such as `src/main.rs (file, 250 lines)`.
    pub fn description(&self) -> String {
        let size = match self.lines {
            Some(1) => "1 line".to_owned(),
            Some(lines) => format!("{lines} lines"),
            None => format!("{} bytes", self.size),
        };
        format!("{} ({}, {size})", self.name, self.kind)
    }
}

debug_shows!(Artifact: id, size, created_at);

impl Drop for Artifact {
    fn drop(&mut self) {
        self.name.zeroize();
        self.metadata.values_mut().for_each(Zeroize::zeroize);
    }
}

/// Which listed artifact serves in place of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// One with the same bytes.
    SameBytes,
    /// Only the same one: messages refer to it by its id.
    SameId,
}

/// An artifact to be added. `Debug` shows no words.
#[derive(Clone)]
#[must_use]
pub struct NewArtifact {
    pub(crate) id: Option<String>,
    pub(crate) kind: ArtifactKind,
    pub(crate) name: String,
    pub(crate) mime_type: Option<String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) reuse: Reuse,
}

impl NewArtifact {
    /// An artifact of this kind with this name.
    pub fn new(kind: ArtifactKind, name: impl Into<String>) -> Self {
        let (name, metadata) = (name.into(), BTreeMap::new());
        let reuse = Reuse::SameBytes;
        Self { id: None, kind, name, mime_type: None, created_at: None, metadata, reuse }
    }

    /// Sets the media type. The default depends on the contents: `text/plain` or `application/octet-stream`.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the creation time. The default is now.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = Some(at);
        self
    }

    /// Sets one of the host's own key-value pairs.
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Uses an existing id instead of a new one.
    pub(crate) fn with_id(mut self, id: String) -> Self {
        self.id = Some(id);
        self
    }

    /// A copy of an existing artifact, with its id and creation time.
    pub(crate) fn copy_of(artifact: &Artifact) -> Self {
        Self {
            id: Some(artifact.id.clone()),
            kind: artifact.kind.clone(),
            name: artifact.name.clone(),
            mime_type: Some(artifact.mime_type.clone()),
            created_at: Some(artifact.created_at),
            metadata: artifact.metadata.clone(),
            reuse: Reuse::SameId,
        }
    }
}

debug_shows!(NewArtifact as it: kind = it.kind.as_str().len());

/// The outcome of adding an artifact.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AddedArtifact {
    /// The stored artifact.
    pub artifact: Artifact,
    /// Whether the conversation already had this artifact with the same bytes. Nothing was added then.
    pub was_there: bool,
}

impl AddedArtifact {
    /// The outcome for this artifact.
    pub fn new(artifact: Artifact, was_there: bool) -> Self {
        Self { artifact, was_there }
    }
}

/// Whether a text is an artifact id.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The artifact ids that a text refers to.
pub fn artifact_references(text: &str) -> impl Iterator<Item = &str> {
    text.split(SCHEME).skip(1).filter_map(|rest| {
        let (id, behind) = rest.split_at_checked(ID_LENGTH)?;
        let ends = !behind.starts_with(|c: char| c.is_ascii_hexdigit());
        (is_id(id) && ends).then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_the_scheme_and_a_whole_id_and_nothing_else() {
        let id = "00112233445566778899aabbccddeeff";
        let text = format!(
            "see artifact://{id}, and (artifact://{id}). No artifact://{id}0 or artifact://x"
        );
        assert_eq!(artifact_references(&text).collect::<Vec<_>>(), [id, id]);
        for wrong in [
            "",
            "artifact://",
            &format!("artifact://{}", id.to_uppercase()),
            &format!("artifact://{}é", id.strip_suffix('f').unwrap()),
        ] {
            assert_eq!(artifact_references(wrong).count(), 0, "{wrong}");
        }
    }

    #[test]
    fn a_kind_keeps_its_name_whether_or_not_it_is_known() {
        for name in ["file", "folder", "search_result", "command_output", "tool_result", "custom"] {
            let kind = ArtifactKind::from(name.to_owned());
            assert_eq!(kind.as_str(), name);
            assert_eq!(matches!(kind, ArtifactKind::Other(_)), name == "custom");
        }
        assert_eq!(ArtifactKind::SearchResult.to_string(), "search result");
    }
}
