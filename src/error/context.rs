//! Errors of contexts and presets.

/// Why an operation on a context or a preset failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersonaFailure {
    /// A number, name or text exceeds its limits.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field, as JSON names it.
        field: &'static str,
        /// What is wrong with it, without its content.
        reason: String,
    },
    /// No context has this id or name.
    #[error("there is no such context; {}", offer("context", .known))]
    NoSuchConversation {
        /// Ids of existing contexts, newest first, at most ten.
        known: Vec<String>,
    },
    /// Several contexts have this name.
    #[error("{} contexts have this name: {}", .ids.len(), .ids.join(", "))]
    AmbiguousName {
        /// Their ids.
        ids: Vec<String>,
    },
    /// Another context that was not deleted has this name. Nothing was changed.
    #[error("the context {id} has that name already")]
    ConversationNameTaken {
        /// The other context's id.
        id: String,
    },
    /// No preset has this id or name, or several have the name.
    #[error("there is no such preset; {}", offer("preset", .known))]
    NoSuchPreset {
        /// Ids of existing presets.
        known: Vec<String>,
    },
    /// The context has expired. It is kept until upkeep removes it.
    #[error("the context expired at {at}")]
    Expired {
        /// The time of expiry.
        at: jiff::Timestamp,
    },
    /// The context was deleted. It is kept until upkeep removes it.
    #[error("the context was deleted at {at}")]
    Deleted {
        /// The time of deletion.
        at: jiff::Timestamp,
    },
    /// The limit of contexts is reached. Nothing was created.
    #[error("there are already {limit} contexts, which is the limit")]
    TooManyConversations {
        /// The limit.
        limit: usize,
    },
    /// The limit of the user's own presets is reached. Nothing was created.
    #[error("there are already {limit} presets, which is the limit")]
    TooManyPresets {
        /// The limit.
        limit: usize,
    },
    /// The user's own presets would exceed their size limit. Nothing was changed.
    #[error("the presets together would exceed their limit of {limit} bytes")]
    PresetsTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The conversation has reached its limit of messages. Nothing was stored.
    #[error("the conversation has {limit} messages, which is the limit")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// Built-in presets cannot be deleted.
    #[error("the preset is built in and cannot be deleted")]
    BuiltIn,
    /// Another preset has this name.
    #[error("another preset has that name")]
    NameTaken,
    /// A part of the context could not be read, or was set aside by a repair, so that a backup would be incomplete.
    /// Nothing was removed.
    #[error(
        "{unread} files of the context cannot be read or are set aside, so it cannot be backed up"
    )]
    NotBackedUp {
        /// The number of files.
        unread: usize,
    },
    /// The context changed while it was being backed up. Nothing was removed.
    #[error("the context is in use")]
    InUse,
}

impl PersonaFailure {
    /// Advice for the user.
    pub(super) fn help(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "correct it as the message says",
            Self::NoSuchConversation { .. } => "list the contexts and choose one of them",
            Self::AmbiguousName { .. } => "give the id of the context, or rename one of them",
            Self::ConversationNameTaken { .. } => {
                "choose another name, or rename the one that has it"
            }
            Self::NoSuchPreset { .. } => "list the presets and choose one of them",
            Self::Expired { .. } => "extend the context",
            Self::Deleted { .. } => "set the context active to restore it",
            Self::TooManyConversations { .. } => {
                "delete contexts, or raise the setting Personas.MaxContexts"
            }
            Self::TooManyPresets { .. } => "delete presets that are not needed",
            Self::PresetsTooLarge { .. } => {
                "shorten its texts, or delete presets that are not needed"
            }
            Self::Full { .. } => {
                "delete messages that are not needed, or raise the setting Personas.MaxMessages"
            }
            Self::BuiltIn => "change it, or set it inactive",
            Self::NameTaken => "choose another name, or change the preset that has it",
            Self::NotBackedUp { .. } => "verify the store to see what is wrong with these files",
            Self::InUse => "try again later",
        }
    }
}

fn offer(what: &str, ids: &[String]) -> String {
    match ids {
        [] => format!("no {what} exists yet"),
        ids => format!("there are {}", ids.join(", ")),
    }
}
