//! Tokens and invitations: secrets of 256 bits

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

/// A secret of 256 bits. Its text is 43 characters of base64url. `Debug` does not show it, and it is wiped after use.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

/// The text is not a secret of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotASecret;

impl Secret {
    /// A random secret. `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice()).ok()?;
        Some(Self(bytes))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its text, for those it is made for.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64URL_NOPAD.encode(self.as_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for NotASecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token or an invitation has 43 characters of base64url")
    }
}

impl std::error::Error for NotASecret {}

impl FromStr for Secret {
    type Err = NotASecret;

    fn from_str(text: &str) -> Result<Self, NotASecret> {
        let mut bytes = Zeroizing::new([0; 32]);
        if text.len() != 43 {
            return Err(NotASecret);
        }
        match BASE64URL_NOPAD.decode_mut(text.as_bytes(), bytes.as_mut_slice()) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(NotASecret),
        }
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.reveal())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        text.parse().map_err(de::Error::custom)
    }
}
