//! The tables of mcp-llm-generator.

use sottovoce::Result;
use sottovoce::import::Refusal;
use sottovoce::import::RefusalReason::Corrupt;

use crate::source::Folder;
use crate::sqlite::{Sqlite, or_refused};

/// A table, and its columns in the order in which they are read, separated by spaces.
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static str,
    /// How many of these every version has.
    needed: usize,
}

pub(super) const CONTEXTS: Table = Table {
    name: "contexts",
    columns: "id name system_prompt personality temperature max_tokens max_history_tokens expiry_days created_at updated_at is_active expires_at",
    needed: 3,
};

/// The columns that it shares with [`CONTEXTS`] have the same indexes.
pub(super) const PRESETS: Table = Table {
    name: "personality_presets",
    columns: "id name system_prompt default_personality default_temperature default_max_tokens default_max_history_tokens default_expiry_days created_at updated_at is_active description metadata",
    needed: 3,
};

pub(super) const MESSAGES: Table =
    Table { name: "conversations", columns: "context_id role content created_at id", needed: 4 };

const TABLES: [&Table; 3] = [&CONTEXTS, &PRESETS, &MESSAGES];

#[derive(Debug)]
pub(super) struct Database {
    sqlite: Sqlite,
    /// The `SELECT` of each table that the database has.
    selects: Vec<(&'static str, String)>,
    unlike: Vec<&'static str>,
}

impl Database {
    pub(super) fn open(folder: &Folder, file: &str) -> Result<Self> {
        let sqlite = Sqlite::open(folder, file)?;
        let (mut selects, mut unlike) = (Vec::new(), Vec::new());
        for table in TABLES {
            if !sqlite.has(table.name)? {
                continue;
            }
            match sqlite.select(table.name, table.columns, table.needed)? {
                Some(select) => selects.push((table.name, select)),
                None => unlike.push(table.name),
            }
        }
        if selects.is_empty() {
            return Err(sqlite.not_importable("it has none of the tables of mcp-llm-generator"));
        }
        Ok(Self { sqlite, selects, unlike })
    }

    /// Tables with the system's names, but with other columns.
    pub(super) fn unlike(&self) -> &[&'static str] {
        &self.unlike
    }

    fn select(&self, table: &Table) -> Option<&str> {
        let mut selects = self.selects.iter();
        selects.find(|(name, _)| *name == table.name).map(|(_, select)| select.as_str())
    }

    /// Calls `take` with each row of a table in the order of insertion. Refuses damaged rows.
    pub(super) fn rows(
        &self,
        table: &Table,
        refused: &mut Vec<Refusal>,
        take: impl FnMut(usize, &rusqlite::Row<'_>),
    ) -> Result<()> {
        let Some(select) = self.select(table) else { return Ok(()) };
        let read = self.sqlite.rows(&format!("{select} ORDER BY rowid"), take).map(Some);
        if or_refused(read, table.name, refused)? == Some(false) {
            let reason = Corrupt("the database is damaged; some of its rows cannot be read");
            refused.push(Refusal::new(table.name, reason));
        }
        Ok(())
    }

    /// Counts the rows of a table.
    pub(super) fn count(&self, table: &Table) -> Result<usize> {
        if self.select(table).is_some() { self.sqlite.count(table.name) } else { Ok(0) }
    }

    /// Counts the rows of other tables.
    pub(super) fn others(&self) -> Result<usize> {
        let mut rows = 0;
        for name in self.sqlite.tables()? {
            if TABLES.iter().all(|table| table.name != name) {
                rows += self.sqlite.count(&name)?;
            }
        }
        Ok(rows)
    }
}
