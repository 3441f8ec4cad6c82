//! The key of a space, which seals what its devices leave for each other in a place that they do not trust.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::crypto::{
    AssociatedData, HEADER, KeyBytes, Kind, Salt, SealingKey, StreamOpener, StreamSealer,
    text_length,
};
use crate::error::{Error, Result};
use crate::store::record::artifact::is_id;
use crate::store::record::import_digest::Origin;

/// The kind of an object in a space. An object of one kind does not open as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectKind {
    /// A device's head: how far its stream goes.
    Head,
    /// A part of a device's stream.
    Segment,
    /// A part of an artifact's contents.
    Piece,
    /// What a team's members share in one step: a message, a setting, a forgetting or a name.
    Record,
}

impl ObjectKind {
    fn kind(self) -> Kind {
        match self {
            Self::Head => Kind::SyncHead,
            Self::Segment => Kind::SyncSegment,
            Self::Piece => Kind::SyncPiece,
            Self::Record => Kind::TeamRecord,
        }
    }
}

/// Seals and opens the objects of a space. Each seal covers the kind, the space, the device and the object's name.
/// `Debug` shows no key, and dropping it wipes the key.
pub struct SpaceKey {
    space: String,
    key: SealingKey,
    salt: Salt,
}

impl SpaceKey {
    /// The key of a space. The space's id is 32 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] for any other id.
    pub fn new(space: &str, key: &[u8; 32]) -> Result<Self> {
        if !is_id(space) {
            let reason = "a space's id is 32 lower-case hexadecimal digits";
            return Err(Error::InvalidMessage { reason });
        }
        let salt = Sha256::new().chain_update("sottovoce/v1 space").chain_update(space).finalize();
        let (key, salt): (KeyBytes, Salt) = (Zeroizing::new(*key), salt.into());
        Ok(Self { space: space.to_owned(), key: SealingKey::new(&key, &salt), salt })
    }

    /// Seals an object of a device.
    ///
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn seal(&self, kind: ObjectKind, device: &str, name: &str, text: &[u8]) -> Result<Vec<u8>> {
        let scope = self.scope(device);
        let mut sealed = Vec::with_capacity(text.len() + text.len() / 1024 + 64);
        let mut sealer = StreamSealer::new(&self.key, &associated(kind, &scope, name))?;
        let mut sink = |bytes: &[u8]| {
            sealed.extend_from_slice(bytes);
            Ok(())
        };
        sealer.write(text, &mut sink)?;
        sealer.finish(&mut sink)?;
        Ok(sealed)
    }

    /// Opens an object. `None` if it was not sealed with this key under exactly this kind, device and name.
    pub fn open(
        &self,
        kind: ObjectKind,
        device: &str,
        name: &str,
        sealed: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let (scope, length) = (self.scope(device), sealed.len() as u64);
        let header = sealed.first_chunk::<HEADER>()?;
        let associated = associated(kind, &scope, name);
        let opener = StreamOpener::new(&self.key, &associated, header, length)?;
        let size = usize::try_from(text_length(length)?).ok()?;
        let mut text = Zeroizing::new(Vec::with_capacity(size));
        opener.open_all(sealed, &mut text)?;
        Some(text)
    }

    /// A name for a message that tells nothing to whoever lacks the key: 64 hexadecimal digits that are the same for all who
    /// have it.
    pub fn pseudonym(&self, origin: Origin) -> String {
        self.key.pseudonym(&self.salt, &origin.to_bytes())
    }

    fn scope<'a>(&'a self, device: &'a str) -> [&'a str; 3] {
        ["sync", &self.space, device]
    }
}

fn associated<'a>(kind: ObjectKind, scope: &'a [&'a str], name: &'a str) -> AssociatedData<'a> {
    AssociatedData::of(kind.kind(), scope, name)
}

debug_shows!(SpaceKey: space);
