//! Reads the database of chorus, and the folders of its agents.

mod agent;
mod database;
mod location;
mod row;
mod session;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;
use sottovoce::Result;
use sottovoce::admin::Progress;
use sottovoce::import::RefusalReason::{self, Corrupt, Unstorable};
use sottovoce::import::{
    ImportedConversation, ImportedConversations, ImportedMessage, ImportedSnapshot, Refusal,
};

use self::database::{Database, Saved};
use self::row::Row;
use crate::reader::Reader;
use crate::source::{Folder, Refusable, named};
use crate::sqlite::or_refused;
use crate::system::CHORUS;
use location::Location;

/// Reads the SQLite database of chorus, `db/chorus.db`, from a private copy in memory, and the folders of its agents,
/// `agents/{agent}`, beside it.
///
/// Each agent's messages become the conversation [`Scope::Named`](sottovoce::Scope::Named) with its name, in the order of
/// their times and then of their ids, also where the agent was deleted. Threads keep their numbers. Tool results stay
/// linked to their calls. Cleared messages stay out of prompts. Saved sessions become snapshots, also those that the
/// database no longer names. The files in `docs` become artifacts. The system prompt in `agent.json` becomes the
/// conversation's persona, which does not expire.
#[derive(Debug)]
pub struct ChorusDatabase {
    path: PathBuf,
}

/// An agent's conversation while it is read.
struct Agent {
    conversation: ImportedConversation,
    /// With their times and ids, by which they are sorted.
    messages: Vec<(Timestamp, i64, ImportedMessage)>,
}

impl ChorusDatabase {
    /// The database's file, or the folder that holds `db/chorus.db`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Reader for ChorusDatabase {
    type Output = ImportedConversations;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let place = Location::of(&self.path)?;
        let database = Database::open(&place.database, &place.file)?;
        let mut found = ImportedConversations::new(CHORUS);
        let mut agents: BTreeMap<String, Agent> = BTreeMap::new();
        // If counting fails, reading the messages returns the error.
        let total = database.messages_count().unwrap_or(0);
        let damage = database.messages(|done, row| {
            progress(Progress { done, total });
            if let Err((name, reason)) = row.and_then(|row| take(row, &mut agents)) {
                found.refused.push(Refusal::new(name, reason));
            }
        })?;
        progress(Progress { done: total, total });
        if let Some(reason) = damage {
            found.refused.push(Refusal::new("messages", reason));
        }
        let cleared = or_refused(database.cleared(), "agents", &mut found.refused)?;
        for (name, cleared) in cleared {
            let Some(agent) = agents.get_mut(&name) else { continue };
            match row::moment(&cleared) {
                Some(at) => agent.conversation.cleared = Some(at),
                None => {
                    let reason = Corrupt("its last_clear_time is not a time");
                    agent.conversation.messages.refused.push(Refusal::new("agents", reason));
                }
            }
        }
        found.passed_over = or_refused(database.others(), "other tables", &mut found.refused)?;
        let sessions = or_refused(database.sessions(), "sessions", &mut found.refused)?;
        let mut known = HashSet::new();
        for saved in &sessions {
            known.insert((saved.agent.clone(), session::file(&saved.id)));
            match agents.get_mut(&saved.agent) {
                Some(agent) => agent.save(&place, saved)?,
                None => found.refused.push(Refusal::new(
                    session::place(saved),
                    Unstorable("its agent has no messages"),
                )),
            }
        }
        read_folders(&place, &known, &mut agents, &mut found)?;
        agents.retain(|_, agent| !agent.is_empty());
        found.conversations = agents.into_values().map(Agent::end).collect();
        Ok(found.sorted())
    }
}

/// Reads the agents' folders: prompts, documents, and sessions without a row.
fn read_folders(
    place: &Location,
    known: &HashSet<(String, String)>,
    agents: &mut BTreeMap<String, Agent>,
    found: &mut ImportedConversations,
) -> Result<()> {
    let all = &place.agents;
    for name in all.folders(&mut found.refused, &mut found.passed_over)? {
        let agent = match agent_of(&name, agents) {
            Ok(agent) => agent,
            Err(reason) => {
                found.refused.push(Refusal::new(all.place(&name), reason));
                continue;
            }
        };
        let level = all.below(&name);
        if !agent::read(&level, &name, &mut agent.conversation, &mut found.passed_over)? {
            continue;
        }
        let sessions = level.below("sessions");
        for (file, _) in sessions.list(&mut agent.conversation.messages.refused)? {
            let Some(id) = str::from_utf8(&file).ok().and_then(|file| file.strip_suffix(".json"))
            else {
                found.passed_over.add("other files beside sessions", 1);
                continue;
            };
            if !known.contains(&(name.clone(), session::file(id))) {
                agent.save_alone(&sessions, &name, id)?;
            }
        }
    }
    Ok(())
}

/// The conversation of an agent; a new one if there is none.
fn agent_of<'a>(
    name: &str,
    agents: &'a mut BTreeMap<String, Agent>,
) -> Result<&'a mut Agent, RefusalReason> {
    let scope = named(name)?;
    Ok(agents.entry(name.to_owned()).or_insert_with(|| Agent {
        conversation: ImportedConversation::new(scope, CHORUS),
        messages: Vec::new(),
    }))
}

/// Adds a message to its agent's conversation. On failure returns the row's name and the reason.
fn take(row: Row, agents: &mut BTreeMap<String, Agent>) -> Result<(), (String, RefusalReason)> {
    let (id, name) = (row.id, row::name(row.id));
    let agent = agent_of(&row.agent, agents).map_err(|reason| (name.clone(), reason))?;
    match row.read() {
        Ok(message) => agent.messages.push((message.message.timestamp, id, message)),
        Err(reason) => agent.conversation.messages.refused.push(Refusal::new(name, reason)),
    }
    Ok(())
}

impl Agent {
    /// Reads a session of the database.
    fn save(&mut self, place: &Location, saved: &Saved) -> Result<()> {
        let name = session::place(saved);
        let refused = &mut self.conversation.messages.refused;
        match read_session(place, saved, &name, refused)? {
            Ok(snapshot) => self.conversation.snapshots.push(snapshot),
            Err(reason) => refused.push(Refusal::new(name, reason)),
        }
        Ok(())
    }

    /// Reads a session that the database does not have.
    fn save_alone(&mut self, folder: &Folder, agent: &str, id: &str) -> Result<()> {
        let name = folder.place(&session::file(id));
        let refused = &mut self.conversation.messages.refused;
        let read = folder.read(&session::file(id))?.and_then(|bytes| {
            // The file has been removed since: the bot may be running.
            let Some(bytes) = bytes else { return Ok(None) };
            let snapshot = session::begin(&session::about(agent, id, &bytes)?)?;
            session::read(snapshot, &bytes, &name, refused).map(Some)
        });
        match read {
            Ok(snapshot) => self.conversation.snapshots.extend(snapshot),
            Err(reason) => refused.push(Refusal::new(name, reason)),
        }
        Ok(())
    }

    /// Whether there is nothing to import or to report.
    fn is_empty(&self) -> bool {
        let ImportedConversation { messages, snapshots, artifacts, facts, .. } = &self.conversation;
        self.messages.is_empty()
            && messages.refused.is_empty()
            && snapshots.is_empty()
            && artifacts.is_empty()
            && facts.assigned_persona.is_none()
    }

    fn end(self) -> ImportedConversation {
        let Self { mut conversation, mut messages } = self;
        messages.sort_by_key(|(time, id, _)| (*time, *id));
        conversation.messages.messages =
            messages.into_iter().map(|(_, _, message)| message).collect();
        conversation
    }
}

fn read_session(
    place: &Location,
    saved: &Saved,
    name: &str,
    refused: &mut Vec<Refusal>,
) -> Refusable<ImportedSnapshot> {
    let snapshot = match session::begin(saved) {
        Ok(snapshot) => snapshot,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(folder) = place.sessions(&saved.agent) else {
        return Ok(Err(Unstorable("its agent's name cannot be the name of a folder")));
    };
    Ok(folder.read(&session::file(&saved.id))?.and_then(|bytes| {
        let bytes = bytes.ok_or(RefusalReason::Unreadable(std::io::ErrorKind::NotFound))?;
        session::read(snapshot, &bytes, name, refused)
    }))
}
