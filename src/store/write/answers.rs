//! Stores answers, but only while the message that they answer is stored.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::name::RecordName;
use crate::store::record::validation::{TimestampPolicy, ValidMessage};
use crate::store::rules::current_state::{is_there, ready};
use crate::store::write::committer::Committer;
use crate::store::write::{Writer, cleanup, is_not_durable, publish_all, trim};

impl Writer {
    /// Stores messages in order if the record that they answer still exists, and replaces a document in the same
    /// commit. Returns whether that succeeded as well.
    pub(crate) fn append_answers(
        &mut self,
        answers: Vec<ChatMessage>,
        answered: RecordName,
        document: Option<(Document, &[u8])>,
    ) -> Result<(Vec<Arc<StoredMessage>>, Result<()>)> {
        let drafts = ValidMessage::all(answers, &self.limits)?;
        if drafts.is_empty() {
            let written = document
                .map_or(Ok(()), |(document, plaintext)| self.write_document(document, plaintext));
            return Ok((Vec::new(), written));
        }
        let mut written = document
            .map_or(Ok(()), |(document, plaintext)| self.check_document(document, plaintext));
        let (stored, lost) = self.locked(|committer, tail, compactor| {
            cleanup::expire(committer, tail)?;
            if !ready(is_there(&committer.state(tail), answered))? {
                return Err(Error::UtteranceForgotten);
            }
            if let Some((document, plaintext)) = document.filter(|_| written.is_ok()) {
                written = match committer.stage(document, plaintext) {
                    Err(error) if is_not_durable(&error) => return Err(error),
                    staged => staged,
                };
            }
            // Its acknowledgement makes the document durable as well.
            let stored = publish_all(committer, tail, drafts, TimestampPolicy::Newest)?;
            if tail.profile.cleared.is_some_and(|cleared| answered.seq <= cleared.seq) {
                drop_refused(committer, tail, &stored);
            }
            compactor.pack(committer, tail);
            Ok((stored, trim(committer, tail)))
        })?;
        self.poisoned |= lost;
        Ok((stored, written))
    }
}

/// Prunes answers whose question was cleared from the context meanwhile. They are durable already, so a failure is
/// only logged.
fn drop_refused(committer: &Committer<'_>, tail: &mut Tail, stored: &[Arc<StoredMessage>]) {
    let seqs: Vec<u64> = stored.iter().map(|stored| stored.seq).collect();
    if let Err(error) = committer.change_profile(tail, |profile| profile.prune(seqs)) {
        tracing::warn!(%error, "an answer to what was cleared stays in the context");
    }
}
