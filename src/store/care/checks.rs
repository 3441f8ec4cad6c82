//! What a conversation in files offers beside what every store does: checks, repair and inventories.

use std::sync::Arc;

use crate::error::Result;
use crate::store::care::baseline::{self, Inventory};
use crate::store::care::repair::{self, RepairOptions, RepairReport};
use crate::store::care::verify::verify;
use crate::store::file_store::FileConversationStore;
use crate::store::record::finding::{Finding, Progress, Report};

impl FileConversationStore {
    /// Checks every file and reports all findings. Calls `progress` on the way. Changes no record. If something seems
    /// lost, it takes the lock briefly to check again.
    ///
    /// # Errors
    /// Only what prevents reading the whole folder.
    pub async fn verify(&self, progress: impl Fn(Progress) + Send + 'static) -> Result<Report> {
        self.read_with(move |reader| verify(&reader.folder, &progress)).await
    }

    /// Takes an inventory of the conversation: numbers, and digests of sealed files. Keep it where nobody who can
    /// replace the store can write; [`compare`](Self::compare) then shows an older copy that was put back. Reads
    /// every record.
    ///
    /// # Errors
    /// Only what prevents reading the whole folder.
    pub async fn inventory(
        &self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Inventory> {
        self.read_with(move |reader| baseline::take(&reader.folder, &progress)).await
    }

    /// Compares the conversation with an earlier inventory. Returns findings about everything that is missing now and
    /// was not forgotten since. Reads every record.
    ///
    /// # Errors
    /// [`Error::OtherScope`](crate::Error::OtherScope) if the inventory is of another conversation. Also what prevents reading the whole
    /// folder.
    pub async fn compare(
        &self,
        earlier: Inventory,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Vec<Finding>> {
        self.read_with(move |reader| baseline::compare(&reader.folder, &earlier, &progress)).await
    }

    /// Repairs what can be repaired. Calls `progress` during the checks before and after. It writes a lost head,
    /// rebuilds damaged packs, removes copies and leftovers, and makes a missing vault. It deletes nothing but what is durable elsewhere with the same bytes, was forgotten, or was never
    /// finished. If it is interrupted, run it again.
    ///
    /// A new head cannot know what the lost one recorded: missing newest records are no longer noticed.
    ///
    /// # Errors
    /// [`Error::WrongKey`](crate::Error::WrongKey) if the vault is missing and no record opens. Also what prevents reading or writing the
    /// folder. What cannot be repaired is no error; the report has it.
    pub async fn repair(
        &self,
        options: RepairOptions,
        progress: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Result<RepairReport> {
        let progress = Arc::new(progress);
        let checking = Arc::clone(&progress);
        let before = self.verify(move |now| checking(now)).await?;
        let plan = repair::plan(&before, options);
        if options.dry_run || plan.is_empty() {
            return Ok(RepairReport { repairs: plan, report: before });
        }
        let mut repairs = self.write(move |writer| repair::carry_out(writer, plan)).await?;
        let report = self.verify(move |now| progress(now)).await?;
        repairs.retain(|action| !report.findings.contains(&action.finding));
        Ok(RepairReport { repairs, report })
    }
}
