//! Gives a conversation that is there a persona, changes it, and takes it away. Messages and scope stay.

use jiff::Timestamp;

use super::PersonaChange;
use crate::error::Result;
use crate::store::ConversationStore;
use crate::store::record::persona::{AssignedPersona, Persona};

/// Assigns a persona to a conversation, made from a preset if its id is given. It expires only if the change says when. A
/// conversation without a title gets this name. Returns whether it was assigned: one that has a persona keeps it.
///
/// # Errors
/// [`PersonaFailure::Invalid`](crate::persona::PersonaFailure::Invalid), and those of changing the settings.
pub async fn assign(
    store: &dyn ConversationStore,
    (mut persona, preset): (Persona, Option<String>),
    change: &PersonaChange,
    name: Option<String>,
) -> Result<bool> {
    persona.expiry_days = *Persona::EXPIRY_DAYS.end();
    change.apply(&mut persona);
    persona.check()?;
    if store.profile().await?.assigned_persona.is_some() {
        return Ok(false);
    }
    let assigned = AssignedPersona { preset, ..AssignedPersona::new(persona, now(store)) };
    let kept = assigned.clone();
    let apply = move |profile: &mut crate::store::Profile| {
        // Another process may have been faster.
        if profile.assigned_persona.is_some() {
            return;
        }
        profile.assigned_persona = Some(assigned.clone());
        if profile.title.is_none() && name.is_some() {
            profile.rename(name.clone());
        }
    };
    let profile = store.change_profile(Box::new(apply)).await?;
    Ok(profile.assigned_persona == Some(kept))
}

/// Changes the persona of a conversation, if it has one.
///
/// # Errors
/// [`PersonaFailure::Invalid`](crate::persona::PersonaFailure::Invalid), and those of changing the settings. Nothing is
/// changed then.
pub async fn change_assigned(store: &dyn ConversationStore, change: PersonaChange) -> Result<()> {
    let Some(assigned) = store.profile().await?.assigned_persona.clone() else { return Ok(()) };
    let mut persona = assigned.persona;
    change.apply(&mut persona);
    persona.check()?;
    let now = now(store);
    let apply = move |profile: &mut crate::store::Profile| {
        if let Some(assigned) = &mut profile.assigned_persona {
            change.apply(&mut assigned.persona);
            assigned.updated_at = now;
        }
    };
    store.change_profile(Box::new(apply)).await.map(drop)
}

/// Takes the persona of a conversation away. Returns whether it had one.
///
/// # Errors
/// Those of changing the settings.
pub async fn unassign(store: &dyn ConversationStore) -> Result<bool> {
    if store.profile().await?.assigned_persona.is_none() {
        return Ok(false);
    }
    store.change_profile(Box::new(|profile| profile.assigned_persona = None)).await?;
    Ok(true)
}

fn now(store: &dyn ConversationStore) -> Timestamp {
    store.clock().now().timestamp()
}
