//! Identifiers, written in hexadecimal digits

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An identifier of `N` bytes. Its text is `2 N` lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hex<const N: usize>([u8; N]);

/// The identifier of an organisation, a member, a device, a token, an invitation, a conversation or an artifact's piece.
pub type Id = Hex<16>;

/// The identifier of a record. A client computes it with a key that the server does not have.
pub type Rid = Hex<32>;

/// The text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotHex;

impl<const N: usize> Hex<N> {
    /// An identifier of these bytes.
    pub const fn new(bytes: [u8; N]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }

    /// An identifier of these bytes, if it is exactly as many.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// A random identifier. `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Display for NotHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an identifier consists of lower-case hexadecimal digits, and has a fixed length",
        )
    }
}

impl std::error::Error for NotHex {}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, NotHex> {
        let mut bytes = [0; N];
        if text.len() != 2 * N {
            return Err(NotHex);
        }
        match HEXLOWER.decode_mut(text.as_bytes(), &mut bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(NotHex),
        }
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
