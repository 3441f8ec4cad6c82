//! Sets of message identities, compact in JSON

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sottovoce::exchange::Origin;

/// A set of identities. In JSON it is one text: base64 of their bytes.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Origins(pub(crate) BTreeSet<Origin>);

impl From<Origins> for String {
    fn from(origins: Origins) -> Self {
        let bytes: Vec<u8> = origins.0.iter().flat_map(|origin| origin.to_bytes()).collect();
        BASE64.encode(bytes)
    }
}

impl TryFrom<String> for Origins {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = BASE64.decode(text).map_err(|_| "not base64")?;
        match bytes.as_chunks() {
            (origins, []) => Ok(Self(origins.iter().copied().map(Origin::from_bytes).collect())),
            _ => Err("not a number of identities"),
        }
    }
}

impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} identities", self.0.len())
    }
}
