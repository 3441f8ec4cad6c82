//! The committer: assigns numbers, publishes files and updates the head. Requires the lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::crypto::{HEADER, SealingKey, StreamOpener, StreamSealer, random};
use crate::error::{Error, Result};
use crate::store::folder::document::{self, whole};
use crate::store::folder::{Folder, HeadState};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::head::Head;
use crate::store::record::layout::{HEAD, QUARANTINE};
use crate::store::record::name::{NameTime, RecordKind, RecordName};
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::write::locked_state::LockedState;
use crate::store::write::room;
use crate::store::write::settings_documents::{put_presets, put_tombstones};

/// The most bytes of a document that may be long and is sealed as an envelope nonetheless.
const LONGEST_ENVELOPE: usize = 1 << 20;

pub(crate) struct Committer<'a> {
    pub(crate) reader: &'a Reader,
    /// The reader's folder.
    pub(crate) folder: &'a Folder,
    pub(crate) key: &'a SealingKey,
    /// Whether the reserve may be used up if the disk is full.
    pub(crate) may_use_reserve: bool,
}

impl Committer<'_> {
    /// This committer for forgetting, which makes room on a full disk.
    pub(crate) fn with_reserve(&self) -> Self {
        Self { may_use_reserve: true, ..*self }
    }

    /// The state of the conversation, as the rules look at it.
    pub(crate) fn state<'b>(&'b self, tail: &'b Tail) -> LockedState<'b> {
        LockedState { reader: self.reader, tail }
    }

    /// Writes something. On a full disk makes room first, if it may.
    pub(crate) fn with_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        match self.may_use_reserve {
            true => room::with_room(self.folder, write),
            false => write(),
        }
    }

    /// Publishes a record under the next number. It is durable once [`acknowledge`](Self::acknowledge) returns.
    pub(crate) fn write(
        &self,
        tail: &Tail,
        time: NameTime,
        kind: RecordKind,
        plaintext: &[u8],
    ) -> Result<RecordName> {
        let seq = tail
            .last_seq
            .checked_add(1)
            .ok_or(Error::InvalidMessage { reason: "the conversation's numbers are used up" })?;
        self.with_room(|| self.folder.publish(self.key, RecordName { time, seq, kind }, plaintext))
    }

    /// Makes published records durable and records them in the head.
    pub(crate) fn acknowledge(&self, tail: &mut Tail) -> Result<()> {
        self.folder.directory.sync()?;
        self.write_head(tail)
    }

    /// Records a durable pack in the head and makes the head durable too, so that even after a power failure the head
    /// covers everything in packs.
    pub(crate) fn acknowledge_packed(&self, tail: &mut Tail) -> Result<()> {
        self.write_head(tail)?;
        self.folder.directory.flush(HEAD)
    }

    /// Overwrites the head. A missing head stays missing until a repair makes one, so that findings report the loss
    /// until then.
    fn write_head(&self, tail: &mut Tail) -> Result<()> {
        // If the folder has findings, leave out the change stamps: every reader then lists the folder and finds them
        // too.
        let stamps = if tail.is_sound() { self.stamps(tail)? } else { (None, None) };
        if std::mem::take(&mut tail.is_disturbed)
            && let HeadState::Known(head) = &mut tail.head
        {
            *head = head.since(stamps.0.unwrap_or_default());
        }
        let Some(head) = tail.head_after(stamps) else {
            return Ok(());
        };
        let line = self.folder.seal_head(self.key, head)?;
        self.with_room(|| self.folder.overwrite_head(&line))?;
        tail.set_head(head, line);
        Ok(())
    }

    /// Renews the folder's change stamp, and the packs' if that has changed. Returns none if the packs cannot be
    /// read: readers then have to list the folder.
    fn stamps(&self, tail: &Tail) -> Result<(Option<u64>, Option<u64>)> {
        let HeadState::Known(head) = tail.head else {
            return Ok((None, None));
        };
        let packs = match self.folder.packs.change_stamp() {
            Ok(now) if now == head.packs => now,
            Ok(_) => self.folder.packs.renew_change_stamp()?,
            Err(_) => return Ok((None, None)),
        };
        Ok((self.folder.directory.renew_change_stamp()?, packs))
    }

    /// Renews the change stamps after changes that do not affect what the head records.
    pub(crate) fn refresh_stamps(&self, tail: &mut Tail) -> Result<()> {
        let HeadState::Known(head) = tail.head else {
            return Ok(());
        };
        let still_true = head.stamp.is_some()
            && tail.is_sound()
            && tail.head_after((head.stamp, head.packs)) == Some(head);
        if still_true && !self.folder.matches_stamps(&head)? {
            self.write_head(tail)?;
        }
        Ok(())
    }

    /// Replaces a document, durably. The head does not change, because cached messages stay valid.
    pub(crate) fn replace(&self, document: Document, plaintext: &[u8]) -> Result<()> {
        self.stage(document, plaintext)?;
        self.folder.directory.sync()
    }

    /// Replaces a document. Durable once the folder is synced.
    pub(crate) fn stage(&self, document: Document, plaintext: &[u8]) -> Result<()> {
        if document.may_be_long() && plaintext.len() > LONGEST_ENVELOPE {
            if self.with_room(|| self.stage_long(document, plaintext))? {
                return Ok(());
            }
            let place = self.folder.directory.path().join(document.file_name());
            let reason = "it did not read back as written, so the old one stays; check the disk";
            return Err(Error::damaged(place, reason));
        }
        let line = self.key.seal(&document.associated(&self.folder.scope.parts()), plaintext)?;
        self.with_room(|| self.folder.directory.replace(document.file_name(), &line))
    }

    /// Replaces a document by one that is sealed as a stream, and reads it back first. Returns whether it read as written.
    pub(crate) fn stage_long(&self, document: Document, plaintext: &[u8]) -> Result<bool> {
        let (scope, name) = (self.folder.scope.parts(), document.file_name());
        self.folder.directory.replace_verified(
            name,
            &mut |sink| {
                let mut sealer = StreamSealer::new(self.key, &document.associated(&scope))?;
                sealer.write(plaintext, sink)?;
                sealer.finish(sink)
            },
            &mut |written| {
                let path = self.folder.directory.path().join(name);
                let failed = |error| Error::io("read back the file", path, error);
                let sealed = whole(&*written).map_err(failed)?;
                let Some(header) = sealed.first_chunk::<HEADER>() else { return Ok(false) };
                let mut text = Zeroizing::new(Vec::with_capacity(plaintext.len()));
                let length = sealed.len() as u64;
                let opener =
                    StreamOpener::new(self.key, &document.associated(&scope), header, length);
                let opened = opener.and_then(|opener| opener.open_all(&sealed, &mut text));
                Ok(opened.is_some() && *text == plaintext)
            },
        )
    }

    /// Changes the settings and records their revision in the head, both durably.
    pub(crate) fn change_profile(
        &self,
        tail: &mut Tail,
        change: impl FnOnce(&mut Profile),
    ) -> Result<()> {
        tail.check_settings(self.folder)?;
        let mut profile = Profile::clone(&tail.profile);
        change(&mut profile);
        if profile == *tail.profile && profile.rev == tail.head.profile() {
            return Ok(());
        }
        self.put_profile(tail, profile)
    }

    /// Records that some of the next so many numbers will be those of restored copies. A number that is recorded in vain only
    /// costs an extra read when something is forgotten.
    pub(crate) fn note_restored(&self, tail: &mut Tail, coming: u64) -> Result<()> {
        let next = tail.last_seq.saturating_add(1);
        let last = tail.last_seq.saturating_add(coming);
        self.change_profile(tail, |profile| {
            profile.restored.extend(std::iter::once(next..=last));
        })
    }

    /// Removes summaries of these messages, and a proposed title, from the settings.
    pub(crate) fn drop_summaries(&self, tail: &mut Tail, seqs: &SeqSet) -> Result<()> {
        match tail.profile.has_any_made_of(seqs) {
            true => self.change_profile(tail, |profile| profile.drop_derived(seqs)),
            false => Ok(()),
        }
    }

    /// Moves a document that nobody can read to the quarantine folder, before another takes its place.
    pub(crate) fn set_aside(&self, document: Document) -> Result<()> {
        if matches!(document::open(self.folder, document)?, Some(Err(_))) {
            document::check_replaceable(self.folder, document)?;
            self.folder.directory.move_into(document.file_name().as_bytes(), QUARANTINE)?;
        }
        Ok(())
    }

    /// Replaces settings that were lost.
    pub(crate) fn renew_profile(
        &self,
        tail: &mut Tail,
        change: impl FnOnce(&mut Profile),
    ) -> Result<()> {
        self.set_aside(Document::Profile)?;
        let mut profile =
            Profile { is_unknown: false, were_lost: true, ..Profile::clone(&tail.profile) };
        change(&mut profile);
        self.put_profile(tail, profile)
    }

    /// Records in the head a settings revision whose writer was interrupted before it could.
    pub(crate) fn acknowledge_profile(&self, tail: &mut Tail) -> Result<()> {
        match tail.head {
            HeadState::Known(head)
                if tail.knows_settings() && head.profile() < tail.profile.rev =>
            {
                self.folder.directory.flush(Document::Profile.file_name())?;
                self.folder.directory.sync()?;
                let profile = Arc::clone(&tail.profile);
                tail.set_profile(profile, self.folder.retention);
                self.acknowledge_packed(tail)
            }
            _ => Ok(()),
        }
    }

    fn put_profile(&self, tail: &mut Tail, mut profile: Profile) -> Result<()> {
        profile.take_revision(&tail.profile, tail.head.profile());
        self.write_profile(tail, profile)
    }

    /// Replaces the settings and keeps their revision. They also record the conversation's highest number.
    pub(crate) fn write_profile(&self, tail: &mut Tail, mut profile: Profile) -> Result<()> {
        put_tombstones(self, &tail.profile, &mut profile)?;
        put_presets(self, &tail.profile, &mut profile)?;
        profile.seq = tail.last_seq;
        let alone = Profile { presets: BTreeMap::new(), ..profile.without_tombstones() };
        let plaintext = alone.to_plaintext()?;
        self.replace(Document::Profile, &plaintext)?;
        tail.set_profile(Arc::new(profile), self.folder.retention);
        match tail.head {
            HeadState::Known(_) => self.acknowledge_packed(tail),
            HeadState::Absent | HeadState::Damaged => Ok(()),
        }
    }

    /// Makes a head if there is none, durably.
    pub(crate) fn make_head(&self, tail: &mut Tail) -> Result<()> {
        let mut run = [0; 8];
        random(&mut run)?;
        let head = Head::default().since(u64::from_be_bytes(run));
        let head = head.with_profile(tail.profile.rev).with_forget(tail.last_forget());
        let head = head.after(tail.last_seq, (None, None), tail.names());
        let line = self.folder.seal_head(self.key, head)?;
        self.folder.directory.replace(HEAD, &line)?;
        self.folder.directory.sync()?;
        self.folder.bear_witness(&line);
        tail.set_head(head, line);
        // Forget the head's bytes, so that the folder is scanned again: findings from before there was a head may no
        // longer hold.
        tail.head_bytes = None;
        Ok(())
    }
}
