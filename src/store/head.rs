//! The head: how far a conversation goes, and the cheap sign that it has changed.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::store::record::object;

/// Bytes of a head's plaintext, so that every head file has the same length and can be overwritten in place.
const LENGTH: usize = 64;

pub(crate) const NAME: &str = "head";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// The highest number ever given.
    pub(crate) seq: u64,
    /// The profile's revision.
    profile: u64,
}

impl Head {
    pub(crate) fn with_seq(self, seq: u64) -> Self {
        Self { seq, ..self }
    }

    pub(crate) fn to_plaintext(self) -> Zeroizing<Vec<u8>> {
        let text = format!(
            "{:LENGTH$}",
            format_args!(r#"{{"seq":{},"profile":{}}}"#, self.seq, self.profile).to_string()
        );
        Zeroizing::new(text.into_bytes())
    }

    pub(crate) fn parse(plaintext: &[u8]) -> Option<Self> {
        object(plaintext).filter(|_| plaintext.len() == LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_head_has_the_same_length_and_comes_back() {
        for seq in [0, 1, 9_999, u64::MAX] {
            let head = Head::default().with_seq(seq);
            let text = head.to_plaintext();
            assert_eq!(text.len(), LENGTH);
            assert_eq!(Head::parse(&text), Some(head));
        }
        assert_eq!(Head::parse(br#"{"seq":1,"profile":0}"#), None);
    }
}
