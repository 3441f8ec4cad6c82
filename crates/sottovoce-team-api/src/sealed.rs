//! Sealed contents, written in base64

use std::fmt;

use data_encoding::BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Contents that were sealed on a member's device. `Debug` shows their length alone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// The sealed bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sealed bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl From<Vec<u8>> for Sealed {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The error would quote the text.
        BASE64.decode(text.as_bytes()).map(Self).map_err(|_| de::Error::custom("not base64"))
    }
}
