//! Reads the database of mcp-llm-generator: contexts with personas, and presets for these.

mod database;
mod location;
mod message;
mod personality;
mod row;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;
use sottovoce::Result;
use sottovoce::admin::Progress;
use sottovoce::import::RefusalReason::{self, Corrupt, Unstorable};
use sottovoce::import::{ImportedConversation, ImportedConversations, Refusal};

use self::database::{CONTEXTS, Database, MESSAGES, PRESETS};
use self::message::{Message, Refused};
use self::row::Row;
use crate::reader::Reader;
use crate::source::named;
use crate::sqlite::or_refused;
use crate::system::LLM_GENERATOR;
use crate::twins::Twins;

/// Reads the SQLite database of mcp-llm-generator, `context-memory.db` or `data/contexts.db`, from a private copy in
/// memory.
///
/// Each context becomes the conversation [`Scope::Named`](sottovoce::Scope::Named) with its id. Its messages keep the order
/// of their rows. Its personality becomes the conversation's [`AssignedPersona`](sottovoce::persona::AssignedPersona); messages of a deleted
/// context become a conversation without one. A number outside the limits of this library is replaced by the nearest one
/// within them, and kept as metadata whose name begins with `mcp-llm-generator:`. Rows of other tables are counted as
/// passed over.
#[derive(Debug)]
pub struct LlmGeneratorDatabase {
    path: PathBuf,
    now: Timestamp,
}

/// The conversations by context id. Equal messages are counted for each.
#[derive(Default)]
struct Contexts(BTreeMap<String, (ImportedConversation, Twins)>);

impl LlmGeneratorDatabase {
    /// The database's file, or a folder that holds it as `context-memory.db`, `contexts.db` or `data/contexts.db`.
    /// Contexts that had expired at `now` are marked.
    pub fn new(path: impl Into<PathBuf>, now: Timestamp) -> Self {
        Self { path: path.into(), now }
    }
}

impl Reader for LlmGeneratorDatabase {
    type Output = ImportedConversations;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let (folder, file) = location::of(&self.path)?;
        let database = Database::open(&folder, &file)?;
        let mut found = ImportedConversations::new(LLM_GENERATOR);
        let refused = &mut found.refused;
        let mut contexts = Contexts::default();
        for unlike in database.unlike() {
            let reason = Corrupt("its columns are not those of mcp-llm-generator");
            refused.push(Refusal::new(unlike, reason));
        }

        let mut refusals = Vec::new();
        database.rows(&CONTEXTS, refused, |_, row| {
            let row = Row::new(row, CONTEXTS.name, self.now);
            if let Err((name, reason)) = contexts.add(row) {
                refusals.push(Refusal::new(name, reason));
            }
        })?;

        // If counting fails, reading the messages returns the error.
        let total = database.count(&MESSAGES).unwrap_or(0);
        database.rows(&MESSAGES, refused, |done, row| {
            progress(Progress { done, total });
            let message = message::parsed(row, done);
            if let Err((name, reason)) = message.and_then(|message| contexts.say(message)) {
                refusals.push(Refusal::new(name, reason));
            }
        })?;
        progress(Progress { done: total, total });

        let mut ids = HashSet::new();
        database.rows(&PRESETS, refused, |_, row| {
            let mut row = Row::new(row, PRESETS.name, self.now);
            let preset = personality::preset(&mut row);
            refusals.append(&mut row.refused);
            match preset {
                Ok(preset) if ids.insert(preset.preset.id.clone()) => {
                    found.presets.presets.push(preset);
                }
                Ok(preset) => {
                    let reason = Unstorable("an earlier preset has the same id");
                    refusals.push(Refusal::new(preset.file, reason));
                }
                Err(reason) => refusals.push(Refusal::new(&row.name, reason)),
            }
        })?;
        refused.append(&mut refusals);
        let others = or_refused(database.others(), "other tables", refused)?;
        found.passed_over.add("rows of other tables", others);
        found.conversations = contexts.end();
        Ok(found.sorted())
    }
}

impl Contexts {
    /// The conversation of a context; a new one if there is none.
    fn of(&mut self, id: &str) -> Result<&mut (ImportedConversation, Twins), RefusalReason> {
        let scope = named(id)?;
        Ok(self.0.entry(id.to_owned()).or_insert_with(|| {
            let mut conversation = ImportedConversation::new(scope, LLM_GENERATOR);
            conversation.messages.is_ordered = true;
            (conversation, Twins::default())
        }))
    }

    /// Adds a context.
    fn add(&mut self, mut row: Row<'_>) -> Result<(), Refused> {
        let id = row.id().map_err(|reason| (row.name.clone(), reason))?;
        if self.0.contains_key(&id) {
            let reason = Unstorable("an earlier context has the same id");
            return Err((row.name, reason));
        }
        let (conversation, _) = self.of(&id).map_err(|reason| (row.name.clone(), reason))?;
        (conversation.facts, conversation.expired) = personality::facts(&mut row);
        conversation.messages.refused.append(&mut row.refused);
        Ok(())
    }

    /// Adds a message to its context's conversation.
    fn say(&mut self, message: Message) -> Result<(), Refused> {
        let place = message.place.clone();
        let (conversation, twins) =
            self.of(&message.context).map_err(|reason| (place.clone(), reason))?;
        conversation.messages.push(place, message.read(twins));
        Ok(())
    }

    fn end(self) -> Vec<ImportedConversation> {
        self.0.into_values().map(|(conversation, _)| conversation).collect()
    }
}
