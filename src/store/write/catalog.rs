//! The catalog of a root's conversations. It is a conversation itself, which hosts cannot open, with a message for
//! each conversation that was created and not removed. It shows when a whole conversation is missing, or the newest
//! part of the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole};
use crate::scope::Scope;
use crate::store::folder::{Folder, HeadState};
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::layout::{CATALOG, HEAD};
use crate::store::record::validation::{Limits, TimestampPolicy};
use crate::store::rules::forget_plan::ForgetRequest;
use crate::store::write::Writer;
use crate::store::write::committer::Committer;
use crate::store::write::compact::Compactor;

pub(crate) struct Catalog {
    pub(crate) reader: Arc<Reader>,
    pub(crate) writer: Writer,
}

impl Catalog {
    /// The catalog of a folder's root.
    pub(crate) fn beside(folder: &Folder, limits: &Limits) -> Self {
        let root = Arc::clone(&folder.root);
        let directory = root.folder(CATALOG);
        let folder = Folder::new(root, directory, Scope::Catalog, folder.keys().to_vec());
        let reader = Arc::new(Reader::new(folder, Arc::clone(&limits.clock)));
        let limits = Limits { redactor: None, ..limits.clone() };
        let writer = Writer::new(Arc::clone(&reader), limits, Compactor::keeping(64));
        Self { reader, writer }
    }

    pub(crate) fn exists(&self) -> Result<bool> {
        Ok(self.reader.folder.directory.link_count(HEAD)? > 0)
    }

    /// The listed conversations as text, with the numbers of their messages.
    pub(crate) fn entries(&self) -> Result<BTreeMap<String, BTreeSet<u64>>> {
        let mut entries: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for stored in self.reader.read_if(&RangeQuery::Seqs(0..=u64::MAX))?.messages {
            entries.entry(stored.message.content.clone()).or_default().insert(stored.seq);
        }
        Ok(entries)
    }

    /// Adds a conversation, durably, and returns its number. `is_new` says that it cannot be listed yet.
    pub(crate) fn enter(&mut self, scope: &Scope, is_new: bool) -> Result<u64> {
        let scope = scope.to_string();
        if !is_new
            && let Some(number) = self.entries()?.remove(&scope).and_then(|mut of| of.pop_last())
        {
            return Ok(number);
        }
        let entry = ChatMessage::at(ChatRole::System, scope, self.reader.now());
        let stored = self.writer.append(vec![entry], TimestampPolicy::Newest)?;
        stored.first().map(|stored| stored.seq).ok_or(Error::ShuttingDown)
    }

    /// Removes a conversation from the list, durably.
    pub(crate) fn leave(&mut self, scope: &str) -> Result<()> {
        let numbers = self.entries()?.remove(scope).unwrap_or_default();
        let numbers: Vec<RangeInclusive<u64>> = numbers.into_iter().map(|seq| seq..=seq).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        self.writer.forget(&ForgetRequest::Numbers(numbers), None).map(drop)
    }
}

/// Adds the conversation that is about to be written to, unless its head says that it is listed. A failure does not
/// prevent writing; the next writer tries again.
pub(crate) fn enter(committer: &Committer<'_>, tail: &mut Tail, limits: &Limits, is_new: bool) {
    let HeadState::Known(head) = tail.head else { return };
    let scope = &*committer.folder.scope;
    if head.listed() != 0 || *scope == Scope::Catalog {
        return;
    }
    let mut catalog = Catalog::beside(committer.folder, limits);
    let entered = match (scope, catalog.exists()) {
        // A default conversation alone needs no catalog: it is in the root itself.
        (Scope::Default, Ok(false)) => return,
        (_, Ok(_)) => catalog.enter(scope, is_new),
        (_, Err(error)) => Err(error),
    };
    match entered {
        Ok(number) => tail.head = HeadState::Known(head.with_listed(number)),
        Err(error) => tracing::warn!(%error, "could not enter the conversation in the catalog"),
    }
}

/// Removes from the list the conversation that is about to be removed, durably. If that is interrupted, the
/// conversation stays and its next writer adds it again.
pub(crate) fn leave(committer: &Committer<'_>, tail: &mut Tail, limits: &Limits) -> Result<()> {
    let mut catalog = Catalog::beside(committer.folder, limits);
    if !catalog.exists()? {
        return Ok(());
    }
    if let HeadState::Known(head) = tail.head
        && head.listed() != 0
    {
        tail.head = HeadState::Known(head.with_listed(0));
        committer.acknowledge_packed(tail)?;
    }
    catalog.leave(&committer.folder.scope.to_string())
}
