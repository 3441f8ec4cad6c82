//! Writes settings, documents, snapshots, artifacts and summaries.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::store::folder::document;
use crate::store::read::thread::tails::ThreadTails;
use crate::store::record::artifact::{Artifact, Reuse, is_id};
use crate::store::record::document::Document;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::import_digest::{ImportTombstones, Origin};
use crate::store::record::profile::Profile;
use crate::store::record::retention::Retention;
use crate::store::record::snapshot::{Snapshot, check_id};
use crate::store::record::summary::Summary;
use crate::store::record::validation::{TimestampPolicy, ValidMessage};
use crate::store::rules::current_state::{check_room, ready};
use crate::store::rules::limits::{self, check_hidden_stay, limits_state};
use crate::store::rules::limits_effect::{HiddenMessages, LimitsEffect};
use crate::store::rules::restore::RestoreJob;
use crate::store::rules::settings::check_writable;
use crate::store::write::{
    Writer, artifacts, cleanup, import_tombstones, publish_many, snapshots, thread_document,
};

/// The most bytes of the state of sync: 512 MiB.
const LONGEST_STATE: usize = 512 << 20;

impl Writer {
    /// Changes the settings.
    pub(crate) fn change_profile(&mut self, change: impl FnOnce(&mut Profile)) -> Result<Profile> {
        self.locked(|committer, tail, _| {
            let mut profile = Profile::clone(&tail.profile);
            change(&mut profile);
            tail.check_settings(committer.folder)?;
            ready(check_hidden_stay(&committer.state(tail), profile.retention))?;
            committer.change_profile(tail, |kept| {
                *kept = std::mem::take(kept).with_host_change(profile);
            })?;
            Ok(Profile::clone(&tail.profile))
        })
    }

    /// What new limits would hide and show. Changes nothing.
    pub(crate) fn limits_effect(&mut self, retention: Option<Retention>) -> Result<LimitsEffect> {
        // This must not create a conversation that was never written to.
        if self.is_fresh()? {
            return Ok(LimitsEffect::default());
        }
        self.locked(|committer, tail, _| {
            tail.check_settings(committer.folder)?;
            ready(limits::effect(&committer.state(tail), retention))
        })
    }

    /// Changes the limits if the effect is the announced one.
    pub(crate) fn change_limits(
        &mut self,
        retention: Option<Retention>,
        hidden: HiddenMessages,
        announced: &LimitsEffect,
    ) -> Result<Profile> {
        self.locked(|committer, tail, _| {
            tail.check_settings(committer.folder)?;
            announced.check_state(&ready(limits_state(&committer.state(tail), retention))?)?;
            if hidden == HiddenMessages::Delete {
                cleanup::before_widening(committer, tail)?;
            }
            committer.change_profile(tail, |profile| profile.retention = retention)?;
            Ok(Profile::clone(&tail.profile))
        })
    }

    /// Clears the context up to now.
    pub(crate) fn clear(&mut self) -> Result<Profile> {
        let now = self.limits.clock.now().timestamp();
        self.locked(|committer, tail, _| {
            let last = tail.last_seq;
            committer.change_profile(tail, |profile| profile.clear(now, last))?;
            Ok(Profile::clone(&tail.profile))
        })
    }

    pub(crate) fn save_snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        self.locked(|committer, tail, _| snapshots::save(committer, tail, snapshot))
    }

    pub(crate) fn delete_snapshot(&mut self, id: &str) -> Result<()> {
        self.locked(|committer, tail, _| snapshots::delete(committer, tail, id))
    }

    /// Restores messages of a snapshot, except those that are in the context already.
    pub(crate) fn restore(&mut self, restoring: &RestoreJob) -> Result<Vec<Arc<StoredMessage>>> {
        let limits = self.limits.clone();
        self.locked(|committer, tail, compactor| {
            let missing = ready(restoring.missing(&committer.state(tail)))?;
            let drafts = ValidMessage::all(missing, &limits)?;
            if drafts.is_empty() {
                return Ok(Vec::new());
            }
            cleanup::expire(committer, tail)?;
            ready(check_room(&committer.state(tail), drafts.len()))?;
            committer.note_restored(tail, drafts.len() as u64)?;
            publish_many(committer, tail, compactor, drafts, TimestampPolicy::Newest)
        })
    }

    /// Replaces a document.
    pub(crate) fn write_document(&mut self, document: Document, plaintext: &[u8]) -> Result<()> {
        self.check_document(document, plaintext)?;
        self.locked(|committer, _, _| committer.replace(document, plaintext))
    }

    /// Notes messages as forgotten, whether or not they are here.
    pub(crate) fn note_forgotten(&mut self, origins: &BTreeSet<Origin>) -> Result<()> {
        let more = ImportTombstones { origins: origins.clone(), ..ImportTombstones::default() };
        self.locked(|committer, tail, _| import_tombstones::note(committer, tail, &more))
    }

    /// Deletes a snapshot, and marks it as deleted even if it was never here.
    pub(crate) fn delete_received_snapshot(&mut self, id: &str) -> Result<()> {
        check_id(id)?;
        self.locked(|committer, tail, _| {
            if tail.profile.snapshots.get(id) == Some(&0) {
                return Ok(());
            }
            snapshots::delete(committer, tail, id)?;
            committer.change_profile(tail, |profile| {
                profile.snapshots.insert(id.to_owned(), 0);
            })
        })
    }

    /// Saves which messages are the newest of each thread, as a reader has found.
    pub(crate) fn save_threads(&mut self, mut tails: ThreadTails) -> Result<()> {
        self.locked(|committer, tail, _| {
            if tails.until > tail.last_seq {
                return Ok(());
            }
            tails.forget(&tail.erased);
            thread_document::save(committer, &tails)
        })
    }

    /// Replaces a document that may be longer than any message: the state of sharing, or what a backup has.
    pub(crate) fn write_state(&mut self, document: Document, plaintext: &[u8]) -> Result<()> {
        let (size, limit) = (plaintext.len(), LONGEST_STATE);
        if size > limit {
            return Err(Error::TooLarge { size, limit });
        }
        document::check_replaceable(&self.reader.folder, document)?;
        self.locked(|committer, _, _| committer.replace(document, plaintext))
    }

    /// Refuses a document that may not be written.
    pub(super) fn check_document(&self, document: Document, plaintext: &[u8]) -> Result<()> {
        check_writable(document)?;
        let (size, limit) = (plaintext.len(), self.limits.max_message_bytes);
        if size > limit {
            return Err(Error::TooLarge { size, limit });
        }
        document::check_replaceable(&self.reader.folder, document)
    }

    /// Checks that an artifact may be sealed. Returns how long to wait for locks.
    pub(crate) fn begin_artifact(&mut self) -> Result<Duration> {
        self.check_sound()?;
        self.reader.folder.create_vault(self.limits.lock_timeout)?;
        Ok(self.limits.lock_timeout)
    }

    /// Lists an artifact whose contents were sealed. Returns the existing one with the same bytes, if there is one.
    pub(crate) fn file_artifact(
        &mut self,
        artifact: &Artifact,
        kid: &str,
        reuse: Reuse,
    ) -> Result<Option<Artifact>> {
        self.locked(|committer, tail, _| artifacts::file(committer, tail, artifact, kid, reuse))
    }

    pub(crate) fn delete_artifacts(&mut self, ids: &[String]) -> Result<()> {
        self.locked(|committer, tail, _| {
            tail.check_settings(committer.folder)?;
            artifacts::delete(committer, tail, ids.iter().map(String::as_str))
        })
    }

    /// Deletes artifacts, and marks those as deleted that were never here.
    pub(crate) fn delete_received_artifacts(&mut self, ids: &[String]) -> Result<()> {
        self.locked(|committer, tail, _| {
            tail.check_settings(committer.folder)?;
            let ids = ids.iter().map(String::as_str).filter(|id| is_id(id));
            if ids.clone().all(|id| tail.profile.has_deleted_artifact(id)) {
                return Ok(());
            }
            let committer = &committer.with_reserve();
            committer.change_profile(tail, |profile| {
                profile.artifacts.extend(ids.clone().map(|id| (id.to_owned(), String::new())));
            })?;
            artifacts::delete(committer, tail, ids)
        })
    }

    /// Installs a summary if `before` is still the newest one of its thread, and none of the messages that it adds to that
    /// was forgotten or cleared. Returns whether it was installed.
    pub(crate) fn install_summary(
        &mut self,
        summary: Summary,
        before: Option<&Summary>,
        continues: bool,
    ) -> Result<bool> {
        self.locked(|committer, tail, _| {
            tail.check_settings(committer.folder)?;
            if !tail.profile.may_install(&summary, before, &tail.erased) {
                return Ok(false);
            }
            committer.change_profile(tail, |profile| profile.install(summary, continues))?;
            Ok(true)
        })
    }

    /// Removes a thread's newest summary. Returns whether there was one.
    pub(crate) fn remove_summary(&mut self, thread: Option<&str>) -> Result<bool> {
        self.locked(|committer, tail, _| {
            let is_there = tail.profile.summary(thread).is_some();
            committer.change_profile(tail, |profile| {
                profile.remove_summary(thread);
            })?;
            Ok(is_there)
        })
    }
}
