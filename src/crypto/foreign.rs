//! Seals as other systems make them, bound to no place and naming no key.

use std::fmt;

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use super::key::random;
use crate::error::{Error, Result};

/// A key of another system: the SHA-256 of a string, for reading empty and public ones included.
pub(crate) struct ForeignKey(Aes256Gcm);

impl ForeignKey {
    pub(crate) fn from_secret(secret: &str) -> Self {
        let mut digest = Sha256::digest(secret.as_bytes());
        let cipher = Aes256Gcm::new(&digest);
        digest.as_mut_slice().zeroize();
        Self(cipher)
    }

    /// Seals bytes without associated data: the nonce, the encrypted bytes and the tag.
    pub(crate) fn seal(&self, plaintext: &[u8]) -> Result<([u8; 12], Vec<u8>, [u8; 16])> {
        let mut iv = [0; 12];
        random(&mut iv)?;
        let mut buffer = plaintext.to_vec();
        let tag = self
            .0
            .encrypt_inout_detached(&iv.into(), &[], buffer.as_mut_slice().into())
            .map_err(|_| Error::InvalidMessage { reason: "it is too long for one seal" })?;
        Ok((iv, buffer, tag.into()))
    }

    /// What was sealed without associated data, or `None` where the key or a bit of it is another.
    pub(crate) fn open(
        &self,
        iv: [u8; 12],
        ciphertext: &[u8],
        tag: [u8; 16],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut buffer = Zeroizing::new(ciphertext.to_vec());
        self.0
            .decrypt_inout_detached(&iv.into(), &[], buffer.as_mut_slice().into(), &tag.into())
            .ok()?;
        Some(buffer)
    }
}

impl fmt::Debug for ForeignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignKey(redacted)")
    }
}

/// The first half of the SHA-256 of these items, each after its length as 4 bytes big-endian.
pub(crate) fn fingerprint(items: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for item in items {
        // Items are read from files of limited size.
        let length = u32::try_from(item.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(item);
    }
    let digest: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_apart_by_their_lengths() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_ne!(fingerprint(&[b"ab"]), fingerprint(&[b"ab", b""]));
        assert_eq!(fingerprint(&[b"ab"]), fingerprint(&[b"ab"]));
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", ForeignKey::from_secret("x")), "ForeignKey(redacted)");
    }
}
