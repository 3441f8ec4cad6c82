//! Identifiers of spaces, devices, objects and publishes

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A random number of 128 bits. Its text is 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(u128);

impl Id {
    /// The identifier that nothing has.
    pub(crate) const ZERO: Self = Self(0);

    /// An identifier with this value.
    pub fn new(value: u128) -> Self {
        Self(value)
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Id {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_exact =
            text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let value = is_exact.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        value.map(Self).ok_or("an identifier has 32 lower-case hexadecimal digits")
    }
}

impl TryFrom<String> for Id {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}
