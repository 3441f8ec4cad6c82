//! Upkeep: what a server does from time to time

use std::time::Duration;

use crate::api::{Id, Role};
use crate::error::Result;
use crate::team::pack::{MIN_BYTES, MIN_ROWS};
use crate::team::text::{Stored, id};
use crate::team::token::NEW_MEMBERS_TOKEN;
use crate::team::{Team, values};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Of the next conversations, those whose first record that is in no pack is old enough, without reading contents. `$3` is the
/// fewest records that are worth a pack, unless they have many bytes.
const CANDIDATES: &str = "\
SELECT x.id, CASE WHEN x.last > x.packed AND (x.last - x.packed >= $3 OR x.bytes >= $4) AND \
 (SELECT r.at FROM record r WHERE r.conversation = x.id AND r.pos = x.packed + 1) < $2 THEN 1 ELSE 0 END FROM (\
 SELECT c.id, c.last, c.bytes, (SELECT coalesce(max(p.last), 0) FROM pack p WHERE p.conversation = c.id) AS packed \
 FROM conversation c WHERE c.id > $1 ORDER BY c.id LIMIT 1000\
) x ORDER BY x.id";
const TURN: &str = "UPDATE upkeep SET due = $2 WHERE due <= $1 OR due > $2 RETURNING due";
/// The token of an owner stays, so that the operator can let its device in again.
const EXPIRED: &str = "\
DELETE FROM token WHERE expires <= $1 AND NOT EXISTS (SELECT 1 FROM member m WHERE m.id = token.member AND m.role = $2)";
const EXPIRED_INVITATIONS: &str = "DELETE FROM invitation WHERE expires <= $1";
/// The newest token of each device, if no owner of its organisation can get in, and none that was made for a shorter time.
const RENEW_OWNERS: &str = "\
UPDATE token SET expires = $2 WHERE expires <= $1 AND expires - created >= $4 \
AND NOT EXISTS (SELECT 1 FROM token n WHERE n.member = token.member AND n.device = token.device AND n.created > token.created) \
AND member IN (SELECT m.id FROM member m WHERE m.role = $3 AND NOT EXISTS (\
SELECT 1 FROM member o JOIN token v ON v.member = o.id WHERE o.org = m.org AND o.role = $3 AND v.expires > $1\
)) RETURNING id";

/// What an upkeep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpkeepReport {
    /// How many records moved from the database into packs.
    pub packed: u64,
    /// How many packs were rewritten, since records in them were forgotten.
    pub rewritten: u64,
    /// How many objects were deleted that nothing refers to.
    pub swept: u64,
}

impl Team {
    /// Moves old records into packs, rewrites packs with forgotten records, deletes objects that nothing refers to, and expired tokens
    /// and invitations. It may run in several processes at the same time, and may be interrupted.
    ///
    /// # Errors
    /// Those of the database and of the object store.
    pub async fn upkeep(&self) -> Result<UpkeepReport> {
        let now = self.now();
        self.rows(EXPIRED, values![now, Role::Owner.number()]).await?;
        self.rows(EXPIRED_INVITATIONS, values![now]).await?;
        let rewritten = self.rewrite_packs(None).await?;
        let mut report = UpkeepReport { rewritten, ..UpkeepReport::default() };
        let before = now.saturating_sub(i64::from(self.quotas.pack_after_days).saturating_mul(DAY));
        let mut after = Vec::new();
        loop {
            let size = values![after, before, MIN_ROWS as i64, MIN_BYTES];
            let rows = self.rows(CANDIDATES, size).await?;
            let Some(last) = rows.last() else { break };
            after = last.bytes(0).unwrap_or_default().to_vec();
            for row in rows.iter().filter(|row| row.int(1) == 1) {
                let conversation: Id = id(row, 0)?;
                loop {
                    let packed = self.pack(conversation, before).await?;
                    report.packed += packed as u64;
                    if packed == 0 {
                        break;
                    }
                }
            }
        }
        report.rewritten += self.rewrite_packs(None).await?;
        report.swept = self.sweep().await?;
        Ok(report)
    }

    /// Whether it is this process's turn, if several serve one database: one of them does the upkeep, this often.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn takes_upkeep(&self, every: Duration) -> Result<bool> {
        // A little earlier, so that the same process does not come too early for itself.
        let next = self.now().saturating_add((every.as_millis() * 9 / 10) as i64);
        Ok(!self.rows(TURN, values![self.now(), next]).await?.is_empty())
    }

    /// Lets the devices of owners in again whose tokens have expired, for a week, in which they get new ones. Returns how many. A team
    /// whose only owner was away for too long can be reached by nobody else.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn renew_owners(&self) -> Result<usize> {
        let now = self.now();
        let usual = i64::try_from(NEW_MEMBERS_TOKEN).unwrap_or(i64::MAX).saturating_mul(1000);
        let values = values![now, now.saturating_add(7 * DAY), Role::Owner.number(), usual];
        Ok(self.rows(RENEW_OWNERS, values).await?.len())
    }

    /// Rewrites the packs of what has just been forgotten. What fails is left to the next upkeep.
    pub(crate) async fn after_forgetting(&self) {
        // One that waits is enough: it sees what was forgotten before it began.
        let Ok(waiting) = self.rewriting.0.try_lock() else { return };
        match self.rewrite_packs(Some(waiting)).await {
            Ok(0) => {}
            Ok(_) => self.sweep_some().await,
            Err(error) => {
                tracing::warn!(%error, "a pack with forgotten records could not be rewritten yet")
            }
        }
    }
}
