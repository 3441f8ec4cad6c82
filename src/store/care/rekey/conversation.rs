//! Reseals the files of one conversation.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::crypto::AssociatedData;
use crate::directory::Directory;
use crate::error::Result;
use crate::store::care::rekey::reseal::ResealOutcome;
use crate::store::care::rekey::{artifact, pack};
use crate::store::folder::{Folder, artifact_files, segments, snapshot_files};
use crate::store::read::reader::Reader;
use crate::store::record::document::Document;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::HEAD;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;
use crate::store::write::Writer;
use crate::store::write::committer::Committer;

/// The most files resealed under one lock, each with an fsync. Other writers wait for the lock.
const SLICE: usize = 32;
/// How many records of a pack take about as long as a file.
const PACKED: usize = 1024;
/// The most files examined under one lock.
const LOOKS: usize = 4096;

/// A sealed file or set of files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Item {
    Head,
    Document(Document),
    Snapshot(String),
    /// An artifact's metadata.
    ArtifactMeta(String),
    Record(RecordName),
    Pack(PackName),
}

impl Item {
    /// The folder that it is in.
    fn directory<'a>(&self, folder: &'a Folder) -> &'a Arc<dyn Directory> {
        match self {
            Self::Pack(_) => &folder.packs,
            Self::Snapshot(_) => &folder.snapshots,
            Self::ArtifactMeta(_) => &folder.artifacts,
            Self::Head | Self::Document(_) | Self::Record(_) => &folder.directory,
        }
    }

    /// How many records it has, judging by its name.
    fn records(&self) -> usize {
        match self {
            Self::Head | Self::Document(_) | Self::Snapshot(_) | Self::ArtifactMeta(_) => 0,
            Self::Record(_) => 1,
            Self::Pack(name) => usize::try_from(name.count.min(1 << 20)).unwrap_or(0),
        }
    }
}

/// How far a conversation is resealed.
#[derive(Debug, Default)]
pub(crate) struct RekeyTally {
    /// Records examined.
    pub(crate) records: usize,
    /// Files resealed.
    pub(crate) files: usize,
    pub(crate) left: Vec<Finding>,
}

/// The state of resealing one conversation.
pub(crate) struct Conversation {
    reader: Arc<Reader>,
    writer: Writer,
    todo: VecDeque<Item>,
    /// Items that are resealed or cannot be. They were listed under the lock after the vault had been replaced, so
    /// nothing new is sealed under an old key.
    seen: HashSet<Item>,
    pub(crate) tally: RekeyTally,
}

impl Conversation {
    pub(crate) fn new(reader: Arc<Reader>, writer: Writer) -> Self {
        let (todo, seen) = (VecDeque::new(), HashSet::new());
        Self { reader, writer, todo, seen, tally: RekeyTally::default() }
    }

    /// The artifacts whose contents are left to reseal, which takes longer than others should wait. Call it when
    /// everything else is done: artifacts that are added later are under the new key.
    pub(crate) fn contents(&self) -> Result<Vec<String>> {
        Ok(artifact_files::FILES.list(&self.reader.folder)?.0)
    }

    /// Reseals an artifact's contents.
    pub(crate) fn reseal_contents(&mut self, id: &str, timeout: Duration) -> Result<()> {
        let resealed = artifact::reseal(&self.reader.folder, id, timeout)?;
        self.tally.note(resealed, artifact_files::FILES.place(id));
        Ok(())
    }

    /// Continues for a while under the lock. Returns whether there may be more to do.
    pub(crate) fn resume(&mut self) -> Result<bool> {
        let Self { writer, todo, seen, tally, .. } = self;
        writer.locked(|committer, _, _| {
            let (mut changed, mut looked_at) = (0, 0);
            let (mut more, mut touched) = (true, vec![&committer.folder.directory]);
            if seen.is_empty() && todo.is_empty() {
                // They are made again from the messages, under the new key.
                segments::remove(committer.folder, &SeqSet::everything())?;
                committer.folder.directory.remove(Document::Threads.file_name())?;
            }
            while more && changed < SLICE && looked_at < LOOKS {
                let Some(item) = todo.pop_front() else {
                    todo.extend(
                        items(committer.folder)?.into_iter().filter(|item| !seen.contains(item)),
                    );
                    more = !todo.is_empty();
                    continue;
                };
                let anew = tally.take(committer, &item)?;
                let own = item.directory(committer.folder);
                if anew {
                    // On a file system without a journal, after a power failure a name may point to reused blocks of
                    // the old file.
                    own.sync()?;
                }
                if touched.iter().all(|known| !Arc::ptr_eq(known, own)) {
                    touched.push(own);
                }
                changed += match item {
                    Item::Pack(_) if anew => 1 + item.records() / PACKED,
                    _ => usize::from(anew),
                };
                looked_at += item.records() + 1;
                seen.insert(item);
            }
            // Sync always: files that an interrupted run has resealed may not be durable yet.
            touched.into_iter().try_for_each(|folder| folder.sync())?;
            if !more {
                tally.left.append(&mut beyond(committer.folder)?);
            }
            Ok(more)
        })
    }
}

impl RekeyTally {
    /// Returns whether the item was resealed.
    fn take(&mut self, committer: &Committer<'_>, item: &Item) -> Result<bool> {
        let scope = committer.folder.scope.parts();
        let own = &*committer.folder.directory;
        let (resealed, place) = match item {
            Item::Head => {
                (committer.reseal_file(own, &AssociatedData::head(&scope))?, HEAD.to_owned())
            }
            Item::Document(document) => {
                (committer.reseal_document(*document)?, document.file_name().to_owned())
            }
            Item::Snapshot(id) => {
                let associated = snapshot_files::FILES.associated(&scope, id);
                (
                    committer.reseal_file(&*committer.folder.snapshots, &associated)?,
                    snapshot_files::FILES.place(id),
                )
            }
            Item::ArtifactMeta(id) => {
                let name = artifact_files::FILES.name(id);
                let associated = artifact_files::FILES.associated(&scope, &name);
                let place = artifact_files::FILES.place(&name);
                match committer.reseal_file(&*committer.folder.artifacts, &associated)? {
                    // Contents that were never listed have no metadata.
                    ResealOutcome::Gone => return Ok(false),
                    resealed => (resealed, place),
                }
            }
            Item::Record(name) => {
                let name = name.to_string();
                (committer.reseal_file(own, &AssociatedData::record(&scope, &name))?, name)
            }
            Item::Pack(name) => (pack::reseal(committer, *name, &mut self.left)?, name.place()),
        };
        self.records += item.records();
        Ok(self.note(resealed, place))
    }

    /// Returns whether the item was resealed.
    fn note(&mut self, resealed: ResealOutcome, place: String) -> bool {
        match resealed {
            ResealOutcome::Already | ResealOutcome::Gone => false,
            ResealOutcome::Left(kind) => {
                self.left.push(kind.in_file(place));
                false
            }
            ResealOutcome::Anew => {
                self.files += 1;
                true
            }
        }
    }
}

/// How many records a folder has, judging by file names; `None` if it has nothing sealed.
pub(crate) fn size(folder: &Folder) -> Result<Option<usize>> {
    let items = items(folder)?;
    let sum = items.iter().fold(0, |sum: usize, item| sum.saturating_add(item.records()));
    Ok((!items.is_empty()).then_some(sum))
}

/// All sealed items in a folder. The head comes first, so that readers notice the change at once.
fn items(folder: &Folder) -> Result<Vec<Item>> {
    let listing = folder.list()?;
    let mut items = Vec::with_capacity(listing.names.len() + listing.packs.len() + 2);
    if folder.directory.link_count(HEAD)? > 0 {
        items.push(Item::Head);
    }
    for document in Document::ALL {
        if folder.directory.link_count(document.file_name())? > 0 {
            items.push(Item::Document(document));
        }
    }
    items.extend(snapshot_files::FILES.list(folder)?.0.into_iter().map(Item::Snapshot));
    items.extend(artifact_files::FILES.list(folder)?.0.into_iter().map(Item::ArtifactMeta));
    items.extend(listing.names.into_iter().map(Item::Record));
    items.extend(listing.packs.into_iter().map(Item::Pack));
    Ok(items)
}

/// Findings about files that may be sealed but that this program cannot reseal.
fn beyond(folder: &Folder) -> Result<Vec<Finding>> {
    let mut found = folder.list()?.foreign;
    found.retain(|finding| matches!(finding.kind, FindingKind::NotPlain(_)));
    Ok(found)
}
