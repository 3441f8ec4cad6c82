//! The audit: who did what to which identifier, and when

use crate::api::{Action, AuditEntry, AuditPage, Id, Role};
use crate::database::Row;
use crate::error::Result;
use crate::team::caller::{Caller, Needs};
use crate::team::text::{Stored, id};
use crate::team::{Team, time, values};

const LIST: &str = "\
SELECT n, at, member, action, target, subject FROM audit WHERE org = $1 AND n > $2 ORDER BY n LIMIT $3";

impl Team {
    pub(crate) async fn audit(&self, caller: &Caller, after: i64, limit: i64) -> Result<AuditPage> {
        let rows = self.rows(LIST, values![caller.org, after, limit]).await?;
        Ok(AuditPage { entries: rows.iter().map(entry).collect::<Result<_>>()? })
    }

    /// Puts an action on record that changes nothing else.
    pub(crate) async fn note(&self, caller: &Caller, action: Action, target: Id) -> Result<()> {
        self.run(self.on_record(caller, Needs::Role(Role::Member), action, target, None))
            .await
            .map(drop)
    }
}

fn entry(row: &Row) -> Result<AuditEntry> {
    Ok(AuditEntry {
        n: row.int(0).unsigned_abs(),
        at: time(row.int(1)),
        member: id(row, 2)?,
        action: Action::read(row, 3)?,
        target: id(row, 4)?,
        subject: row.bytes(5).and_then(Id::from_slice),
    })
}
