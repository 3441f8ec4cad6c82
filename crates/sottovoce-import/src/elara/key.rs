//! Elara's encryption. It uses no associated data and no key ids.

use std::fmt;

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use sha2::{Digest, Sha256};
use sottovoce::{Error, Result};
use zeroize::{Zeroize, Zeroizing};

/// A key of Elara: the SHA-256 of a string. Empty and public strings can be used for reading.
pub(crate) struct ElaraKey(Aes256Gcm);

impl ElaraKey {
    pub(crate) fn from_secret(secret: &str) -> Self {
        let mut digest = Sha256::digest(secret.as_bytes());
        let cipher = Aes256Gcm::new(&digest);
        digest.as_mut_slice().zeroize();
        Self(cipher)
    }

    /// Seals bytes without associated data: the nonce, the encrypted bytes and the tag.
    pub(crate) fn seal(&self, plaintext: &[u8]) -> Result<([u8; 12], Vec<u8>, [u8; 16])> {
        let mut iv = [0; 12];
        getrandom::fill(&mut iv).map_err(|_| Error::NoRandomness)?;
        let mut buffer = plaintext.to_vec();
        let tag = self
            .0
            .encrypt_inout_detached(&iv.into(), &[], buffer.as_mut_slice().into())
            .map_err(|_| Error::InvalidMessage { reason: "it is too long for one seal" })?;
        Ok((iv, buffer, tag.into()))
    }

    /// Opens bytes that were sealed without associated data; `None` for another key, or damaged bytes.
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

impl fmt::Debug for ElaraKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElaraKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", ElaraKey::from_secret("x")), "ElaraKey(redacted)");
    }
}
