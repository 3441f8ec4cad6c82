//! Opens records one after another with reused buffers.

use std::sync::Arc;

use crate::crypto::{AssociatedData, Scratch};
use crate::error::Result;
use crate::store::folder::{Folder, Opened, unreadable};
use crate::store::record::encoding::{self, StoredMessage};
use crate::store::record::finding::FindingKind;
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::forget_record::ForgetRecord;

/// Opens records one after another without allocating for each.
pub(crate) struct RecordDecoder<'a> {
    folder: &'a Folder,
    scope: Vec<&'a str>,
    scratch: Scratch,
}

impl<'a> RecordDecoder<'a> {
    pub(crate) fn new(folder: &'a Folder) -> Self {
        Self { folder, scope: folder.scope.parts(), scratch: Scratch::default() }
    }

    /// Opens a record in a file of its own.
    pub(crate) fn read(&mut self, name: RecordName) -> Result<Opened> {
        let text = name.to_string();
        match self.folder.directory.read(&text) {
            Ok(Some(bytes)) => self.open(name, &text, &bytes),
            Ok(None) => Ok(Opened::Gone),
            Err(error) => unreadable(error).map(Opened::Skipped),
        }
    }

    /// Opens a record's bytes under its name, which is also given as text.
    pub(crate) fn open(&mut self, name: RecordName, text: &str, bytes: &[u8]) -> Result<Opened> {
        let Self { folder, scope, scratch } = self;
        let plaintext =
            match folder.unseal_in(scratch, &AssociatedData::record(scope, text), bytes)? {
                Ok(plaintext) => plaintext,
                Err(kind) => return Ok(Opened::Skipped(kind)),
            };
        let opened = if name.is_forget() {
            ForgetRecord::parse(plaintext).map(Opened::Forget)
        } else {
            encoding::decode(name, plaintext)
                .map(|message| StoredMessage::new(&folder.scope, name, message))
                .map(|stored| Opened::Message(Arc::new(stored)))
        };
        Ok(opened.unwrap_or(Opened::Skipped(FindingKind::BadRecord)))
    }
}

impl Folder {
    /// Opens one record. Returns an error only for failures that would affect every file.
    pub(crate) fn open(&self, name: RecordName) -> Result<Opened> {
        RecordDecoder::new(self).read(name)
    }

    /// Opens a record's bytes, from a file of their own or a pack.
    pub(crate) fn open_bytes(&self, name: RecordName, bytes: &[u8]) -> Result<Opened> {
        RecordDecoder::new(self).open(name, &name.to_string(), bytes)
    }
}
