//! Merges an export's settings into those of a conversation that has its own.

use zeroize::Zeroizing;

use crate::error::Result;
use crate::store::record::persona::AssignedPersona;
use crate::store::{ConversationStore, FileConversationStore, Profile};
use crate::transfer::import::{ImportedFacts, ImportedLimits, LeftOut, presets};
use crate::transfer::settings::change;

/// The fields before a conversation's records.
#[derive(Default)]
pub(super) struct Head {
    pub(super) scope: String,
    pub(super) last_seq: u64,
    pub(super) partial: bool,
    pub(super) profile: Profile,
    pub(super) calibration: Option<Zeroizing<String>>,
    pub(super) imports: Option<Vec<u8>>,
}

/// What the records have shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adoption {
    /// Whether the conversation was empty.
    pub(super) was_empty: bool,
    /// Whether both are states of one conversation.
    pub(super) is_same: bool,
    /// Whether the export has everything that is here, and newer settings.
    pub(super) is_later: bool,
    /// Whether messages of the export were here before.
    pub(super) have_met: bool,
    /// Whether all messages of the export were forgotten here.
    pub(super) is_forgotten: bool,
}

/// Merges the title, tags and notes, and fills settings that are empty: presets, and the persona of a conversation that was
/// empty, lost its own or got one since. Returns what is left out.
pub(super) async fn adopt(
    store: &FileConversationStore,
    head: &Head,
    adoption: Adoption,
) -> Result<Vec<LeftOut>> {
    let Adoption { was_empty, is_same, is_later, have_met, is_forgotten } = adoption;
    let (here, mut there) = (store.profile().await?, Profile::clone(&head.profile));
    let mut left_out = Vec::new();
    let limits = limits(&there);
    if !limits.are_in(&here) {
        left_out.push(LeftOut::Limits(limits));
    }
    if is_forgotten {
        there.clear_metadata();
    }
    if let Some(theirs) = there.assigned_persona.clone() {
        let is_welcome = was_empty || is_same && (here.were_lost || is_later);
        let is_left_out = match &here.assigned_persona {
            Some(own) => !is_same && own.persona != theirs.persona,
            None => !is_welcome,
        };
        if is_left_out {
            left_out.push(LeftOut::Persona);
        }
        there.assigned_persona =
            Some(theirs).filter(|_| here.assigned_persona.is_none() && is_welcome);
    }
    let presets = std::mem::take(&mut there.presets);
    let others = presets::merge(&mut Profile::clone(&here), presets.clone());
    left_out.extend(others.into_iter().map(|id| LeftOut::Preset { id }));
    let mut facts = ImportedFacts::default();
    facts.created_at = there.created_at;
    facts.spent = there.imported_cost;
    facts.assigned_persona = there.assigned_persona.take().map(AssignedPersona::in_force);
    let adopted = move |profile: &mut Profile| {
        if !is_forgotten {
            profile.merge_description(&there, have_met);
        }
        facts.add_to(profile);
        profile.were_lost &= profile.assigned_persona.is_none();
        presets::merge(profile, presets.clone());
    };
    change(store, adopted).await?;
    Ok(left_out)
}

/// The limits in a profile.
pub(super) fn limits(profile: &Profile) -> ImportedLimits {
    ImportedLimits { retention: profile.retention, window_seconds: profile.window_seconds }
}
