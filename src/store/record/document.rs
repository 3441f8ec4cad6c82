//! The kinds of sealed documents beside the messages.

use crate::crypto::{Kind, Place};

/// What a conversation keeps beside its messages, at most one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Document {
    /// What a model's token counts have taught about the length of texts.
    Calibration,
    /// Which imported messages were forgotten since.
    Imports,
    /// The presets of a store, in the default conversation; they are read and changed with its settings.
    Presets,
    /// The conversation's own settings; [`Profile`](crate::Profile) reads and changes them.
    Profile,
}

impl Document {
    pub(crate) const ALL: [Self; 4] =
        [Self::Calibration, Self::Imports, Self::Presets, Self::Profile];

    /// The document's file within the conversation's folder.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Imports => "imports",
            Self::Presets => "presets",
            Self::Profile => "profile",
        }
    }

    pub(crate) fn is_name(name: &[u8]) -> bool {
        Self::ALL.iter().any(|document| document.file_name().as_bytes() == name)
    }

    pub(crate) fn place<'a>(self, scope: &'a [&'a str]) -> Place<'a> {
        let kind = match self {
            Self::Calibration => Kind::Calibration,
            Self::Imports => Kind::Imports,
            Self::Presets => Kind::Presets,
            Self::Profile => Kind::Profile,
        };
        Place::of(kind, scope, self.file_name())
    }
}
