//! Upkeep: what a server does from time to time

use crate::api::Id;
use crate::error::Result;
use crate::team::text::id;
use crate::team::{Team, values};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Conversations with records that are in no pack. A short tail is never packed.
const CANDIDATES: &str = "\
SELECT c.id FROM conversation c WHERE c.id > $1 AND \
c.last - (SELECT coalesce(max(p.last), 0) FROM pack p WHERE p.conversation = c.id) > 0 ORDER BY c.id LIMIT 1000";
const EXPIRED: [&str; 2] =
    ["DELETE FROM token WHERE expires <= $1", "DELETE FROM invitation WHERE expires <= $1"];

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
        for sql in EXPIRED {
            self.rows(sql, values![now]).await?;
        }
        let mut report =
            UpkeepReport { rewritten: self.rewrite_packs().await?, ..UpkeepReport::default() };
        let before = now.saturating_sub(i64::from(self.quotas.pack_after_days).saturating_mul(DAY));
        let mut after = Vec::new();
        loop {
            let rows = self.rows(CANDIDATES, values![after]).await?;
            let Some(last) = rows.last() else { break };
            after = last.bytes(0).unwrap_or_default().to_vec();
            for row in &rows {
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
        report.rewritten += self.rewrite_packs().await?;
        report.swept = self.sweep().await?;
        Ok(report)
    }

    /// Rewrites the packs of what has just been forgotten. What fails is left to the next upkeep.
    pub(crate) async fn after_forgetting(&self) {
        match self.rewrite_packs().await {
            Ok(0) => {}
            Ok(_) => self.sweep_some().await,
            Err(error) => {
                tracing::warn!(%error, "a pack with forgotten records could not be rewritten yet")
            }
        }
    }
}
