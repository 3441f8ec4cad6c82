//! The tables of chorus.

use sottovoce::Result;
use sottovoce::import::PassedOver;
use sottovoce::import::RefusalReason::{self, Corrupt};

use super::row::{self, Row};
use crate::source::Folder;
use crate::sqlite::{self, Sqlite, number, text};

/// Tables whose rows a store cannot hold.
const OTHERS: [(&str, &str); 5] = [
    ("branches", "names and states of threads"),
    ("audit_log", "rows of the audit log"),
    ("thread_steps", "steps of threads"),
    ("processes", "processes"),
    ("settings", "settings of the bot"),
];

#[derive(Debug)]
pub(super) struct Database(Sqlite);

/// A row of `sessions`.
pub(super) struct Saved {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) description: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) saved_at: Option<String>,
    pub(super) window: [Option<String>; 2],
}

impl Database {
    pub(super) fn open(folder: &Folder, file: &str) -> Result<Self> {
        let database = Sqlite::open(folder, file)?;
        if !database.has("messages")? {
            return Err(database.not_importable("it has no table `messages`"));
        }
        Ok(Self(database))
    }

    /// Counts the rows of other tables.
    pub(super) fn others(&self) -> Result<PassedOver> {
        let mut others = PassedOver::default();
        for (table, kind) in OTHERS {
            if self.0.has(table)? {
                others.add(kind, self.0.count(table)?);
            }
        }
        Ok(others)
    }

    /// Calls `take` with each message in the order of ids, or with the name of a row that cannot be read and the
    /// reason. Returns the reason if the database is damaged and the rest cannot be read.
    pub(super) fn messages(
        &self,
        mut take: impl FnMut(usize, Result<Row, (String, RefusalReason)>),
    ) -> Result<Option<RefusalReason>> {
        let columns = "id agent_name role content timestamp thread_id tool_calls tool_call_id discord_message_id";
        let sql = self.0.select("messages", columns, 5)?;
        let sql =
            sql.ok_or_else(|| self.0.not_importable("its table `messages` is not that of chorus"))?;
        let is_whole = self.0.rows(&format!("{sql} ORDER BY id"), |done, row| {
            let name = match sqlite::value(row, 0).and_then(number) {
                Ok(Some(id)) => row::name(id),
                _ => format!("messages, row {}", done + 1),
            };
            take(done, parsed(row).map_err(|reason| (name, reason)));
        })?;
        let damage = Corrupt("the database is damaged; some of its messages cannot be read");
        Ok((!is_whole).then_some(damage))
    }

    pub(super) fn messages_count(&self) -> Result<usize> {
        self.0.count("messages")
    }

    /// The agents whose context was cleared, and when.
    pub(super) fn cleared(&self) -> Result<Vec<(String, String)>> {
        let texts = self.0.texts("agents", "name last_clear_time")?;
        let pair = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
            Ok([Some(agent), Some(at)]) => Some((agent, at)),
            _ => None,
        };
        Ok(texts.into_iter().filter_map(pair).collect())
    }

    /// The saved sessions.
    pub(super) fn sessions(&self) -> Result<Vec<Saved>> {
        let columns = "id agent_name description summary saved_at window_start window_end";
        let saved = |row: Vec<Option<String>>| {
            let [id, agent, description, summary, saved_at, start, end] =
                <[_; 7]>::try_from(row).ok()?;
            let (id, agent, window) = (id?, agent?, [start, end]);
            Some(Saved { id, agent, description, summary, saved_at, window })
        };
        Ok(self.0.texts("sessions", columns)?.into_iter().filter_map(saved).collect())
    }
}

fn parsed(row: &rusqlite::Row<'_>) -> Result<Row, RefusalReason> {
    let value = |at| sqlite::value(row, at);
    let needed = |at, reason| text(value(at)?)?.ok_or(Corrupt(reason));
    let calls = text(value(6)?)?.filter(|text| !text.trim_ascii().is_empty());
    let unreadable = |_| Corrupt("its tool_calls are not JSON");
    Ok(Row {
        id: number(value(0)?)?.ok_or(Corrupt("it has no id"))?,
        agent: needed(1, "it has no agent_name")?,
        role: needed(2, "it has no role")?,
        content: text(value(3)?)?,
        timestamp: needed(4, "it has no timestamp")?,
        thread: number(value(5)?)?,
        tool_calls: calls
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(unreadable)?,
        tool_call_id: text(value(7)?)?,
        discord_message_id: number(value(8)?)?,
    })
}
