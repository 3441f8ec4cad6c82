//! The folder of an agent: its persona and its documents.

use serde::Deserialize;
use sottovoce::Result;
use sottovoce::import::RefusalReason::Corrupt;
use sottovoce::import::{ImportedConversation, PassedOver, Refusal};
use sottovoce::persona::{AssignedPersona, Persona};
use sottovoce::store::{ArtifactKind, NewArtifact};

use super::row::moment;
use crate::fields::json;
use crate::source::{EntryKind, Folder, Refusable, artifact, misnamed};
use crate::system::CHORUS;

/// The file with the agent's prompt.
pub(super) const FILE: &[u8] = b"agent.json";
/// The folders of its documents and sessions.
pub(super) const DOCS: &[u8] = b"docs";
pub(super) const SESSIONS: &[u8] = b"sessions";

/// The most folders below each other in which documents are searched.
const DEEPEST: usize = 8;

#[derive(Deserialize)]
struct Fields {
    system_prompt: Option<String>,
    created_at: Option<String>,
}

/// Reads the folder into the agent's conversation. Returns whether it has a folder of sessions.
pub(super) fn read(
    level: &Folder,
    agent: &str,
    conversation: &mut ImportedConversation,
    passed_over: &mut PassedOver,
) -> Result<bool> {
    let (mut refused, mut has_sessions) = (Vec::new(), false);
    for (name, kind) in level.list(&mut refused)? {
        match (kind, name.as_slice()) {
            (EntryKind::File, FILE) => {
                if let Err(reason) = persona(level, conversation)? {
                    refused.push(level.refusal(FILE, reason));
                }
            }
            (EntryKind::Folder, DOCS) => {
                let docs = level.below("docs");
                documents(&docs, ("docs", 0), agent, conversation, passed_over)?;
            }
            (EntryKind::Folder, SESSIONS) => has_sessions = true,
            (EntryKind::File, _) => passed_over.add("other files of agents", 1),
            (EntryKind::Folder, _) => passed_over.add("other folders of agents", 1),
            (EntryKind::Other, _) => refused.push(level.refusal(&name, misnamed(kind))),
        }
    }
    conversation.messages.refused.append(&mut refused);
    conversation.facts.file = level.place("agent.json");
    Ok(has_sessions)
}

/// Reads the persona. Agents do not expire, so it gets the longest expiry.
fn persona(folder: &Folder, conversation: &mut ImportedConversation) -> Refusable<()> {
    let bytes = folder.read("agent.json")?;
    let read = || {
        let bytes = bytes?.unwrap_or_default();
        let fields: Fields =
            json::object(json::text(&bytes)?, "its fields are not those of an agent")?;
        let created_at = fields.created_at.as_deref().and_then(moment);
        let prompt = fields.system_prompt.filter(|prompt| !prompt.trim().is_empty());
        let assigned_persona = prompt.map(|prompt| {
            let mut persona = Persona::new(prompt);
            persona.expiry_days = *Persona::EXPIRY_DAYS.end();
            persona.check().map_err(|_| Corrupt("its system_prompt is over 65,536 bytes"))?;
            Ok(AssignedPersona::new(persona, created_at.unwrap_or_default()))
        });
        Ok((created_at, assigned_persona.transpose()?))
    };
    Ok(read().map(|(created_at, assigned_persona)| {
        let facts = &mut conversation.facts;
        (facts.created_at, facts.assigned_persona) = (created_at, assigned_persona);
    }))
}

/// Reads the documents of a folder and its subfolders. A document that changed since an earlier import is not imported
/// again.
fn documents(
    level: &Folder,
    (path, depth): (&str, usize),
    agent: &str,
    conversation: &mut ImportedConversation,
    passed_over: &mut PassedOver,
) -> Result<()> {
    for (name, kind) in level.list(&mut conversation.messages.refused)? {
        let Ok(name) = String::from_utf8(name.clone()) else {
            conversation.messages.refused.push(level.refusal(&name, misnamed(EntryKind::File)));
            continue;
        };
        let id = format!("{path}/{name}");
        match kind {
            EntryKind::Folder if depth < DEEPEST => {
                let below = (id.as_str(), depth + 1);
                documents(&level.below(&name), below, agent, conversation, passed_over)?;
            }
            EntryKind::Folder => passed_over.add("folders that are too deep", 1),
            EntryKind::File => {
                let title = id.strip_prefix("docs/").unwrap_or(&id);
                let new = NewArtifact::new(ArtifactKind::File, title);
                let new = match name.ends_with(".md") {
                    true => new.mime_type("text/markdown"),
                    false => new,
                };
                let artifact = artifact((CHORUS, agent, &id), new, level, name);
                conversation.artifacts.push(artifact);
            }
            EntryKind::Other => {
                let refusal = Refusal::new(level.place(&name), misnamed(kind));
                conversation.messages.refused.push(refusal);
            }
        }
    }
    Ok(())
}
