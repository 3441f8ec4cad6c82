//! What goes wrong with contexts and presets.

/// Why something cannot be done with a context or a preset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersonaFailure {
    /// A figure, name or text that is not within its limits.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field, as JSON names it.
        field: &'static str,
        /// What is wrong with it, in figures alone.
        reason: String,
    },
    /// There is no context of that id or name.
    #[error("there is no such context; {}", offer("context", .known))]
    NoSuchContext {
        /// Ids of those that there are, the newest first, at most ten.
        known: Vec<String>,
    },
    /// Several contexts have that name.
    #[error("{} contexts have that name: {}", .ids.len(), .ids.join(", "))]
    SeveralContexts {
        /// Their ids.
        ids: Vec<String>,
    },
    /// Another context that was not deleted has that name already. Nothing was changed.
    #[error("the context {id} has that name already")]
    ContextNameTaken {
        /// The other one's id.
        id: String,
    },
    /// There is no preset of that id or name, or several have that name.
    #[error("there is no such preset; {}", offer("preset", .known))]
    NoSuchPreset {
        /// Ids of those that there are.
        known: Vec<String>,
    },
    /// The context has expired; it is kept until it is cleaned up.
    #[error("the context expired at {at}")]
    Expired {
        /// When.
        at: jiff::Timestamp,
    },
    /// The context was deleted; it is kept until it is cleaned up.
    #[error("the context was deleted at {at}")]
    Deleted {
        /// When.
        at: jiff::Timestamp,
    },
    /// There are as many contexts as there may be. Nothing was made.
    #[error("there are {limit} contexts already, and no more may be made")]
    TooManyContexts {
        /// The limit.
        limit: usize,
    },
    /// There are as many presets of one's own as there may be. Nothing was made.
    #[error("there are {limit} presets already, and no more may be made")]
    TooManyPresets {
        /// The limit.
        limit: usize,
    },
    /// The presets of one's own take as many bytes as they may. Nothing was changed.
    #[error("the presets would take over {limit} bytes together, which is the most that they may")]
    PresetsTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The conversation is as long as it may be. Nothing was kept.
    #[error("the conversation has {limit} messages, and may have no more")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// Presets that are built in cannot be deleted.
    #[error("the preset is built in, and cannot be deleted")]
    BuiltIn,
    /// Another preset has that name already.
    #[error("another preset has that name")]
    NameTaken,
    /// Something of the context could not be read, or was set aside by a repair, so that no backup would be whole. Nothing
    /// was removed.
    #[error(
        "{unread} files of the context cannot be read or are set aside, so that it cannot be backed up"
    )]
    NotBackedUp {
        /// How many.
        unread: usize,
    },
    /// Something was said in the context while it was being backed up. Nothing was removed.
    #[error("the context is in use")]
    InUse,
}

impl PersonaFailure {
    /// What to do about it.
    pub(super) fn help(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "correct it as the message above says",
            Self::NoSuchContext { .. } => "list the contexts and choose one of them",
            Self::SeveralContexts { .. } => "give the id of the one that is meant, or rename one",
            Self::ContextNameTaken { .. } => "choose another name, or rename the one that has it",
            Self::NoSuchPreset { .. } => "list the presets and choose one of them",
            Self::Expired { .. } => "extend it",
            Self::Deleted { .. } => "set it active to take it back",
            Self::TooManyContexts { .. } => {
                "delete contexts, or raise the setting Personas.MaxContexts"
            }
            Self::TooManyPresets { .. } => "delete presets that are not needed",
            Self::PresetsTooLarge { .. } => "say less in it, or delete presets that are not needed",
            Self::Full { .. } => {
                "delete messages that are not needed, or raise the setting Personas.MaxMessages"
            }
            Self::BuiltIn => "change it, or set it inactive",
            Self::NameTaken => "choose another name, or change the preset that has it",
            Self::NotBackedUp { .. } => "verify the store to see what is wrong with them",
            Self::InUse => "try again later",
        }
    }
}

fn offer(what: &str, ids: &[String]) -> String {
    match ids {
        [] => format!("no {what} was made yet"),
        ids => format!("there are {}", ids.join(", ")),
    }
}
