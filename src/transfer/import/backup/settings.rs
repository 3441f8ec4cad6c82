//! Merges an export's settings into those of a conversation that has its own.

use crate::error::Result;
use crate::store::record::persona::AssignedPersona;
use crate::store::{ConversationStore, FileConversationStore, Profile};
use crate::transfer::import::backup::parse::Head;
use crate::transfer::import::{ImportedLimits, LeftOut, presets};

/// How a conversation and an export are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// The conversation is empty.
    Empty,
    /// Both are states of one conversation.
    Same,
    /// They are different conversations, or have diverged.
    Another,
}

/// What the records have shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adoption {
    pub(super) line: Line,
    /// Whether the export has everything that is here, so that its settings replace those here.
    pub(super) is_later: bool,
    /// Whether messages of the export were here before.
    pub(super) have_met: bool,
    /// Whether all messages of the export were forgotten here.
    pub(super) is_forgotten: bool,
}

/// Merges the title, tags and notes, and fills settings that are empty: presets, and the persona of a conversation that was
/// empty or lost its own.
/// Returns what is left out.
pub(super) async fn adopt(
    store: &FileConversationStore,
    head: &Head,
    adoption: Adoption,
) -> Result<Vec<LeftOut>> {
    let Adoption { line, is_later, have_met, is_forgotten } = adoption;
    let (here, mut there) = (store.profile().await?, Profile::clone(&head.profile));
    let mut left_out = Vec::new();
    let limits = limits(&there);
    if !limits.are_in(&here) {
        left_out.push(LeftOut::Limits(limits));
    }
    if is_forgotten {
        there.clear_metadata();
    }
    let takes_settings = is_later && here.rev < there.rev;
    let lost = line == Line::Same && here.were_lost;
    if let Some(theirs) = there.assigned_persona.clone() {
        let is_welcome = line == Line::Empty || lost || takes_settings;
        let is_left_out = match &here.assigned_persona {
            Some(own) => line != Line::Same && own.persona != theirs.persona,
            None => !is_welcome,
        };
        if is_left_out {
            left_out.push(LeftOut::Persona);
        }
        there.assigned_persona =
            Some(theirs).filter(|_| here.assigned_persona.is_none() && is_welcome);
    }
    if takes_settings {
        return Ok(left_out);
    }
    let presets = std::mem::take(&mut there.presets);
    let mut after = Profile::clone(&here);
    let others = presets::merge(&mut after, presets.clone());
    left_out.extend(others.into_iter().map(|id| LeftOut::Preset { id }));
    let adopted = move |profile: &mut Profile| {
        if !is_forgotten {
            profile.merge_description(&there, have_met);
        }
        if profile.assigned_persona.is_none()
            && let Some(assigned_persona) = there.assigned_persona.clone()
        {
            profile.assigned_persona = Some(AssignedPersona::in_force(assigned_persona));
            profile.were_lost = false;
        }
        presets::merge(profile, presets.clone());
    };
    adopted.clone()(&mut after);
    // An unchanged profile is not written, since that would create the conversation.
    if after != *here {
        store.change_profile(Box::new(adopted)).await?;
    }
    Ok(left_out)
}

/// The limits in a profile.
pub(super) fn limits(profile: &Profile) -> ImportedLimits {
    ImportedLimits { retention: profile.retention, window_seconds: profile.window_seconds }
}
