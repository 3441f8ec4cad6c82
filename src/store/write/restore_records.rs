//! Restores a conversation's contents under their original numbers.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::read::record_dump::{Body, Record};
use crate::store::read::tail::Tail;
use crate::store::record::artifact::Artifact;
use crate::store::record::encoding::to_json;
use crate::store::record::name::{RecordKind, RecordName};
use crate::store::record::profile::Profile;
use crate::store::record::snapshot::{Snapshot, check_id};
use crate::store::record::validation::ValidMessage;
use crate::store::write::committer::Committer;
use crate::store::write::pack_batch::Batch;
use crate::store::write::{Writer, artifacts, snapshots};

impl Writer {
    /// Restores settings with their revision, unless newer ones exist. Returns `false` and restores nothing if something was
    /// stored after the number `seen`.
    pub(crate) fn restore_profile(&mut self, profile: Profile, seen: u64) -> Result<bool> {
        self.locked(|committer, tail, _| {
            if tail.last_seq != seen {
                return Ok(false);
            }
            if tail.head.profile() < profile.rev {
                committer.write_profile(tail, profile)?;
            }
            Ok(true)
        })
    }

    /// Limits the settings so that they hide no future messages.
    pub(crate) fn clamp_profile(&mut self) -> Result<()> {
        let now = self.limits.clock.now().timestamp();
        self.locked(|committer, tail, _| {
            tail.check_settings(committer.folder)?;
            let newest = tail.newest.timestamp().unwrap_or(Timestamp::MIN);
            let clamped = tail.profile.clamped_to(tail.last_seq, newest, now);
            committer.change_profile(tail, |profile| *profile = clamped)
        })
    }

    /// Restores records that come after all existing ones, in the order of their numbers and few enough for one pack.
    /// They are durable on return. Returns `false` and restores nothing if something was stored after the number
    /// `seen`.
    pub(crate) fn restore_records(&mut self, records: Vec<Record>, seen: u64) -> Result<bool> {
        self.locked(|committer, tail, compactor| {
            if tail.last_seq != seen {
                return Ok(false);
            }
            let is_sorted = records.is_sorted_by(|a, b| a.name.seq < b.name.seq);
            if !is_sorted || records.first().is_some_and(|first| first.name.seq <= seen) {
                return Err(Error::InvalidMessage { reason: "its numbers are not in order" });
            }
            let mut together = Vec::new();
            for Record { name, body } in records {
                match body {
                    Body::Message(message) => {
                        if name.kind != RecordKind::from(message.role) {
                            return Err(Error::InvalidMessage {
                                reason: "its name has another role",
                            });
                        }
                        together.push((name, ValidMessage::stored_before(message, name.time)?));
                    }
                    Body::Forget(erased) => {
                        // A forget record cannot cover later numbers.
                        if erased.highest() >= name.seq {
                            return Err(Error::InvalidMessage {
                                reason: "it covers numbers after its own",
                            });
                        }
                        publish(committer, tail, std::mem::take(&mut together))?;
                        let plaintext = to_json(&erased)?;
                        let name = committer.folder.publish(committer.key, name, &plaintext)?;
                        tail.last_seq = name.seq;
                        tail.forgets.push(name);
                        committer.acknowledge(tail)?;
                        *tail = Tail::load_alone(committer.folder, 0, None)?;
                    }
                }
            }
            publish(committer, tail, together)?;
            compactor.merge_packs(committer);
            Ok(true)
        })
    }

    /// Restores a snapshot that the settings list.
    pub(crate) fn restore_snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        check_id(&snapshot.id)?;
        self.locked(|committer, _, _| snapshots::put(committer, snapshot))
    }

    /// Restores the metadata of an artifact that the settings list.
    pub(crate) fn restore_artifact(&mut self, artifact: &Artifact) -> Result<()> {
        self.locked(|committer, _, _| artifacts::put_meta(committer, artifact))
    }
}

fn publish(
    committer: &Committer<'_>,
    tail: &mut Tail,
    records: Vec<(RecordName, ValidMessage)>,
) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let (names, drafts): (Vec<RecordName>, Vec<ValidMessage>) = records.into_iter().unzip();
    Batch::of(drafts)?.publish_as(committer, tail, names)?;
    Ok(())
}
