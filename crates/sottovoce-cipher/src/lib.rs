//! AES-256-GCM, in place. Its code is generic, so it is compiled where it is called: in this crate, which debug builds
//! optimize.

use std::fmt;

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};

/// The bytes of a tag, which tells whether the text and what is associated with it are those that were sealed.
pub const TAG: usize = 16;

/// A key, ready for use. It is wiped when it is dropped.
pub struct Cipher(Aes256Gcm);

impl Cipher {
    /// Takes a key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Aes256Gcm::new(key.into()))
    }

    /// Seals a text in place, and returns its tag; `None` if the text is longer than 64 GiB. A nonce is used once under a key.
    #[must_use]
    pub fn seal(&self, nonce: &[u8; 12], associated: &[u8], text: &mut [u8]) -> Option<[u8; TAG]> {
        let tag = self.0.encrypt_inout_detached(nonce.into(), associated, text.into()).ok()?;
        Some(tag.into())
    }

    /// Opens a text in place. `false` if it was not sealed with this key, nonce and associated data; it stays as it is then.
    #[must_use]
    pub fn open(
        &self,
        nonce: &[u8; 12],
        associated: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> bool {
        self.0.decrypt_inout_detached(nonce.into(), associated, text.into(), tag.into()).is_ok()
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_sealed_as_the_standard_says() {
        // Test case 16 of "The Galois/Counter Mode of Operation (GCM)" by McGrew and Viega.
        let byte = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
        let hex = |text: &str| text.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>();
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let nonce = hex("cafebabefacedbaddecaf888");
        let associated = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let plain = hex(concat!(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        ));
        let sealed = hex(concat!(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        ));
        let cipher = Cipher::new(key.as_slice().try_into().unwrap());
        let nonce: [u8; 12] = nonce.try_into().unwrap();
        let mut text = plain.clone();
        let mut tag = cipher.seal(&nonce, &associated, &mut text).unwrap();
        assert_eq!(text, sealed);
        assert_eq!(tag.as_slice(), hex("76fc6ece0f4e1768cddf8853bb2d551b"));
        assert!(cipher.open(&nonce, &associated, &mut text, &tag));
        assert_eq!(text, plain);
        let mut text = sealed.clone();
        assert!(!cipher.open(&nonce, &associated[1..], &mut text, &tag));
        tag[15] ^= 1;
        assert!(!cipher.open(&nonce, &associated, &mut text, &tag));
        assert_eq!(text, sealed);
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", Cipher::new(&[7; 32])), "Cipher(redacted)");
    }
}
