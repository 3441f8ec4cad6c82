//! Elara's encryption. It uses no associated data and no key ids.

use sha2::{Digest, Sha256};
use sottovoce::{Error, Result};
use sottovoce_cipher::Cipher;
use zeroize::{Zeroize, Zeroizing};

/// A key of Elara: the SHA-256 of a string. Empty and public strings can be used for reading.
#[derive(Debug)]
pub(crate) struct ElaraKey(Cipher);

impl ElaraKey {
    pub(crate) fn from_secret(secret: &str) -> Self {
        let mut digest = Sha256::digest(secret.as_bytes());
        let cipher = Cipher::new(digest.as_ref());
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
            .seal(&iv, &[], &mut buffer)
            .ok_or(Error::InvalidMessage { reason: "it is too long for one seal" })?;
        Ok((iv, buffer, tag))
    }

    /// Opens bytes that were sealed without associated data; `None` for another key, or damaged bytes.
    pub(crate) fn open(
        &self,
        iv: [u8; 12],
        ciphertext: &[u8],
        tag: [u8; 16],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut buffer = Zeroizing::new(ciphertext.to_vec());
        self.0.open(&iv, &[], &mut buffer, &tag).then_some(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", ElaraKey::from_secret("x")), "ElaraKey(Cipher(redacted))");
    }
}
