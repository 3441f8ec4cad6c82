//! The audit: who did what to which identifier, and when

use crate::api::{Action, AuditEntry, AuditPage, Id};
use crate::database::Row;
use crate::error::Result;
use crate::team::caller::{Permit, permitted};
use crate::team::text::{Stored, id};
use crate::team::{Team, time, values};

const LIST: &str = concat!(
    "SELECT n, at, member, action, target, subject FROM audit WHERE org = $6 AND n > $7 AND ",
    permitted!(),
    " ORDER BY n LIMIT $8"
);

impl Team {
    pub(crate) async fn audit(&self, permit: &Permit, after: i64, limit: i64) -> Result<AuditPage> {
        let rows = self.read(permit, LIST, values![permit.caller.org, after, limit]).await?;
        Ok(AuditPage { entries: rows.iter().map(entry).collect::<Result<_>>()? })
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
