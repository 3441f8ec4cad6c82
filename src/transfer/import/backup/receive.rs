//! Writes the elements of an export into stores.

use std::collections::BTreeSet;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::file_store::known::Known;
use crate::store::file_store::wait;
use crate::store::folder::{artifact_contents as contents, artifact_files};
use crate::store::read::record_dump::{Body, Record};
use crate::store::record::artifact::{self, NewArtifact};
use crate::store::record::import_digest::{ImportTombstones, Origin};
use crate::store::record::layout::QUARANTINE;
use crate::store::record::snapshot;
use crate::store::write::{add_artifact, import_tombstones};
use crate::store::{
    Artifact, ConversationStore, Document, FileConversationStore, Profile, Progress, Snapshot,
};
use crate::transfer::exchange::receive;
use crate::transfer::import::backup::merge::Merge;
use crate::transfer::import::backup::settings::{self, Head};
use crate::transfer::import::{ConversationReport, ImportReport, LeftOut};

/// The highest sequence number and revision that an export may have. Higher ones would leave too little room to count
/// on.
const HIGHEST: u64 = u32::MAX as u64;

/// The most records, and bytes of text, that are restored together.
const TOGETHER: usize = 32_768;
const TOGETHER_BYTES: usize = 16 << 20;

/// Opens the conversation of a scope for writing.
pub type OpenStore = Box<
    dyn Fn(Scope) -> Pin<Box<dyn Future<Output = Result<FileConversationStore>> + Send>> + Send,
>;

type Shown = Box<dyn Fn(Progress) + Send>;
type Done = Box<dyn FnMut(&ConversationReport) + Send>;

/// Receives the elements of an export, on a thread that may block.
pub(super) struct Receiver {
    open: OpenStore,
    stopped: Arc<AtomicBool>,
    progress: Shown,
    done: Done,
    with_limits: bool,
    current: Option<Current>,
    reports: Vec<ConversationReport>,
}

/// The conversation that is being imported.
struct Current {
    store: FileConversationStore,
    head: Head,
    /// `None` while an export is restored exactly.
    merge: Option<Merge>,
    /// Whether the settings here are the export's, so that a restore may have been interrupted.
    may_go_on: bool,
    /// What was forgotten here and not in the exported conversation, if this is a restore or goes on with one.
    unwanted: BTreeSet<Origin>,
    /// Whether some of that was restored, and is forgotten again.
    has_forgotten: bool,
    /// Records to be restored under their own sequence numbers, and the bytes of their text.
    waiting: Vec<Record>,
    bytes: usize,
    /// The highest sequence number in the store.
    seen: u64,
    settled: bool,
    /// Whether the whole conversation had been forgotten, its folder included.
    was_gone: bool,
    report: ImportReport,
    left_out: Vec<LeftOut>,
    snapshots: usize,
    artifacts: usize,
    read: usize,
}

impl Receiver {
    pub(super) fn new(
        open: OpenStore,
        stopped: Arc<AtomicBool>,
        (progress, done): (Shown, Done),
        with_limits: bool,
    ) -> Self {
        let reports = Vec::new();
        Self { open, stopped, progress, done, with_limits, current: None, reports }
    }

    pub(super) fn reports(self) -> Vec<ConversationReport> {
        self.reports
    }

    fn current(&mut self) -> Result<&mut Current> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::ShuttingDown);
        }
        self.current.as_mut().ok_or(Error::ShuttingDown)
    }

    /// Opens the conversation, and decides whether it is restored exactly or merged.
    pub(super) fn begin(&mut self, head: Head) -> Result<()> {
        let scope: Scope = head.scope.parse()?;
        let mut head = head.checked()?;
        let store = wait((self.open)(scope))?;
        if head.scope != store.scope().to_string() {
            return Err(Error::OtherScope);
        }
        // Each store has its own list of conversations that were forgotten, and its own document of tombstones.
        head.profile.forgotten_scopes.clear();
        head.profile.tombstones_rev = (head.profile.tombstones() != Profile::default()).into();
        let was_gone = store.writer().blocking_lock().record_if_forgotten()?;
        let tail = store.reader().newest()?;
        let may_go_on = !head.partial && *tail.profile == head.profile;
        let is_fresh = tail.last_seq == 0 && tail.profile.rev == 0;
        let is_exact = !head.partial && is_fresh || tail.last_seq == 0 && may_go_on;
        let unwanted = match is_exact || may_go_on {
            true => head.without_own(import_tombstones::all(store.reader())?.unwanted()),
            false => BTreeSet::new(),
        };
        let merge = match is_exact {
            true => {
                // Settings first, so that prompts never see messages that were cleared.
                let profile = Profile::clone(&head.profile);
                if !store.writer().blocking_lock().restore_profile(profile, tail.last_seq)? {
                    return Err(head.changed_meanwhile());
                }
                restore_documents(&store, &head)?;
                None
            }
            false => Some(Merge::new(&store, &head, &tail)?),
        };
        self.current = Some(Current {
            store,
            head,
            merge,
            may_go_on,
            unwanted,
            has_forgotten: false,
            waiting: Vec::new(),
            bytes: 0,
            seen: tail.last_seq,
            settled: false,
            was_gone,
            report: ImportReport::default(),
            left_out: Vec::new(),
            snapshots: 0,
            artifacts: 0,
            read: 0,
        });
        Ok(())
    }

    /// Takes a message or a deletion.
    pub(super) fn record(&mut self, record: Record) -> Result<()> {
        let current = self.current()?;
        if record.name.seq > HIGHEST {
            return Err(Error::InvalidMessage { reason: "its sequence number is out of range" });
        }
        if matches!(record.body, Body::Message(_)) {
            current.read += 1;
        }
        current.go_on_if_interrupted(record.name.seq);
        match (&mut current.merge, record) {
            (None, record) => {
                if let Body::Message(message) = &record.body {
                    current.report.taken += 1;
                    current.bytes += message.content.len();
                }
                current.waiting.push(record);
            }
            (Some(merge), Record { name, body: Body::Message(message) }) => {
                merge.take(name, message, &current.head, &mut current.report)?;
            }
            // The export's list of what was forgotten says it of each message.
            (Some(_), Record { body: Body::Forget(_), .. }) => {}
        }
        if current.waiting.len() >= TOGETHER || current.bytes >= TOGETHER_BYTES {
            current.put_back()?;
        }
        let (done, last) = (current.read, current.head.last_seq);
        let total = usize::try_from(last).unwrap_or(usize::MAX).max(done);
        (self.progress)(Progress { done, total });
        Ok(())
    }

    /// Takes a snapshot; the records have ended.
    pub(super) fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        let current = self.current()?;
        current.settle()?;
        if snapshot.rev > HIGHEST {
            return Err(Error::InvalidMessage { reason: "its revision is out of range" });
        }
        let profile = current.store.reader().settings()?;
        let known = profile.has_had_snapshot(&snapshot.id);
        // An interrupted import may have listed the snapshot already.
        let listed = profile.revision(&snapshot.id) == Some(snapshot.rev);
        let is_lost =
            listed && current.store.reader().folder.snapshots.link_count(&snapshot.id)? == 0;
        match &mut current.merge {
            Some(_) if known && !is_lost => {}
            merge
                if current.has_forgotten || !is_lost && merge.as_ref().is_some_and(Merge::fits) =>
            {
                let id = snapshot.id.clone();
                match wait(current.store.save_snapshot(snapshot)) {
                    Ok(()) => current.snapshots += 1,
                    // All its messages were forgotten here.
                    Err(Error::EmptySnapshot) if current.has_forgotten => {
                        wait(current.store.delete_snapshot(&id))?;
                    }
                    Err(Error::EmptySnapshot) => {}
                    Err(error) => return Err(error),
                }
            }
            Some(merge) if !is_lost => merge.snapshots.push(snapshot),
            _ => {
                current.store.writer().blocking_lock().restore_snapshot(&snapshot)?;
                current.snapshots += 1;
            }
        }
        Ok(())
    }

    /// Takes an artifact; the records have ended.
    pub(super) fn artifact(&mut self, artifact: Artifact, content: &mut dyn Read) -> Result<()> {
        let current = self.current()?;
        current.settle()?;
        if !artifact::is_id(&artifact.id) {
            return Err(Error::InvalidMessage {
                reason: "an artifact's id is 32 hexadecimal digits",
            });
        }
        let listed = current.store.reader().settings()?;
        match listed.artifacts.get(&artifact.id) {
            // A deleted artifact stays deleted.
            Some(sha256) if *sha256 != artifact.sha256 => return Ok(()),
            Some(_) => {
                let put_back = put_artifact_back(&current.store, &artifact, content)?;
                current.artifacts += usize::from(put_back);
                return Ok(());
            }
            None if current.merge.is_none() => {
                let reason = "an artifact of the export is in no list";
                return Err(Error::InvalidMessage { reason });
            }
            None => {}
        }
        let new = NewArtifact::copy_of(&artifact);
        let (reader, writer) = (current.store.reader(), current.store.writer());
        let added = add_artifact::add(reader, writer, &new, content)?;
        current.artifacts += usize::from(!added.was_there);
        Ok(())
    }

    /// Ends the conversation.
    pub(super) fn end(&mut self) -> Result<()> {
        self.current()?.settle()?;
        let Some(mut current) = self.current.take() else { return Ok(()) };
        if let Some(merge) = &mut current.merge {
            current.snapshots += merge.save_snapshots(&mut current.report)?;
        }
        if self.with_limits {
            current.set_limits()?;
        }
        let stats = wait(current.store.stats())?;
        let report = ConversationReport {
            scope: Scope::clone(current.store.scope()),
            thread: None,
            messages: current.report.sorted(),
            expired: current.store.reader().has_expired()?,
            snapshots: current.snapshots,
            artifacts: current.artifacts,
            left_out: current.left_out,
            limits: stats.retention,
            hidden: stats.hidden,
        };
        (self.done)(&report);
        self.reports.push(report);
        if current.was_gone {
            current.store.writer().blocking_lock().remove_forgotten()?;
        }
        Ok(())
    }
}

impl Head {
    /// Refuses settings that no store can have written: their ids become file names, and counting goes on from their
    /// numbers.
    fn checked(mut self) -> Result<Self> {
        let profile = &mut self.profile;
        let imports = self.imports.as_deref().map(ImportTombstones::parse);
        let imports = imports.unwrap_or_else(|| Some(ImportTombstones::default()));
        profile.imports = imports.as_ref().map_or(0, |list| list.rev);
        let ids_are_ids = profile.snapshots.keys().all(|id| snapshot::is_id(id))
            && profile.artifacts.keys().all(|id| artifact::is_id(id));
        let cleared = profile.cleared.map_or(0, |cleared| cleared.seq);
        let numbers = profile.snapshots.values().copied().chain([
            profile.rev,
            profile.description_revs.highest(),
            profile.imports,
            cleared,
            profile.pruned.highest(),
            profile.restored.highest(),
        ]);
        match ids_are_ids && imports.is_some() && numbers.max() <= Some(HIGHEST) {
            true => Ok(self),
            false => {
                Err(Error::InvalidMessage { reason: "the settings of the export are invalid" })
            }
        }
    }

    /// The messages that the exported conversation does not list as forgotten.
    fn without_own(&self, mut origins: BTreeSet<Origin>) -> BTreeSet<Origin> {
        let own = ImportTombstones::parse(self.imports.as_deref().unwrap_or_default());
        origins.retain(|origin| !own.as_ref().is_some_and(|own| own.is_unwanted(*origin)));
        origins
    }

    fn changed_meanwhile(&self) -> Error {
        let reason =
            "another process wrote to the conversation meanwhile; import again to continue";
        Error::Damaged { place: self.scope.clone(), reason }
    }
}

impl Current {
    /// Restores exactly from the first record on that is not here, if a restore of the same export was interrupted.
    fn go_on_if_interrupted(&mut self, seq: u64) {
        if seq <= self.seen || !std::mem::take(&mut self.may_go_on) {
            return;
        }
        if self.merge.as_ref().is_some_and(Merge::is_a_beginning) {
            self.merge = None;
        }
    }

    /// Restores the waiting records.
    fn put_back(&mut self) -> Result<()> {
        let records = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let Some(last) = records.last().map(|record| record.name.seq) else { return Ok(()) };
        let mut writer = self.store.writer().blocking_lock();
        if !writer.restore_records(records, self.seen)? {
            return Err(self.head.changed_meanwhile());
        }
        self.seen = last;
        Ok(())
    }

    /// Ends the records. Snapshots, artifacts and settings depend on all of them.
    fn settle(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        self.put_back()?;
        if self.merge.is_none() {
            self.store.writer().blocking_lock().clamp_profile()?;
        }
        self.forget_unwanted()?;
        match &mut self.merge {
            None => {}
            Some(merge) => {
                // Those of a restore that broke off may name numbers that other messages get now.
                if !self.store.reader().newest()?.is_fresh() {
                    self.store.writer().blocking_lock().clamp_profile()?;
                }
                self.left_out = merge.end_records(&self.head, &mut self.report)?;
            }
        }
        Ok(())
    }

    /// Forgets again what was restored although it had been forgotten here: a conversation that was forgotten completely has
    /// no contents and no list, but the default one's list names its messages.
    fn forget_unwanted(&mut self) -> Result<()> {
        if self.unwanted.is_empty() {
            return Ok(());
        }
        let mut known = Known::default();
        let forgetting = receive::forget_those_here(&self.store, &mut known, &self.unwanted);
        let forgotten = wait(forgetting)?;
        self.has_forgotten = forgotten > 0;
        if self.merge.is_none() {
            self.report.taken = self.report.taken.saturating_sub(forgotten);
        }
        self.report.forgotten += forgotten;
        Ok(())
    }

    /// Applies the export's limits.
    fn set_limits(&mut self) -> Result<()> {
        let limits = settings::limits(&self.head.profile);
        self.left_out.retain(|left_out| !matches!(left_out, LeftOut::Limits(_)));
        wait(limits.set(&self.store))
    }
}

/// Restores documents that are missing.
fn restore_documents(store: &FileConversationStore, head: &Head) -> Result<()> {
    let documents = [
        (Document::Calibration, head.calibration.as_ref().map(|text| text.as_bytes())),
        (Document::Imports, head.imports.as_deref()),
    ];
    for (document, bytes) in documents {
        if let Some(bytes) = bytes
            && wait(store.read_document(document))?.is_none()
        {
            let bytes = Zeroizing::new(bytes.to_vec());
            wait(store.write(move |writer| writer.write_state(document, &bytes)))?;
        }
    }
    Ok(())
}

/// Restores an artifact that is listed already. Returns whether it was missing.
pub(crate) fn put_artifact_back(
    store: &FileConversationStore,
    artifact: &Artifact,
    content: &mut dyn Read,
) -> Result<bool> {
    let folder = &store.reader().folder;
    let profile = store.reader().settings()?;
    if artifact_files::read_contents(folder, &profile, &artifact.id)
        .is_ok_and(|there| there.is_some())
    {
        return Ok(false);
    }
    // An interrupted import may have left contents without a description.
    let is_whole = match folder.artifacts.open(&artifact.id)? {
        Some(source) => contents::opener(folder, &artifact.id, &*source)?.is_ok(),
        None => false,
    };
    if !is_whole {
        // The contents may open under another key, so they are kept aside.
        folder.artifacts.move_into(artifact.id.as_bytes(), QUARANTINE)?;
        add_artifact::put_back(store.reader(), store.writer(), artifact, content)?;
    }
    store.writer().blocking_lock().restore_artifact(artifact)?;
    Ok(true)
}
