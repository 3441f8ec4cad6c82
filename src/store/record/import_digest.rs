//! Identity of messages in all stores that they get into.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::crypto::fingerprint;
use crate::error::Error;
use crate::message::{ChatMessage, IMPORTED_FROM};
use crate::scope::Scope;

/// The system of messages that come from another store of this format.
pub(crate) const SOTTOVOCE: &str = "sottovoce";

/// Identifies a message wherever it gets: a digest of its system, its name there and its text. It does not change when the
/// source moves, the store's key changes or redaction changes the text. A message that was said in a store of this format
/// has its scope and number for a name.
///
/// Its text, in `Display`, `Debug` and serde, is 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(u128);

impl Origin {
    /// The identity of a message as the other system stores it.
    pub(crate) fn new(system: &str, name: &str, message: &ChatMessage) -> serde_json::Result<Self> {
        let record = zeroize::Zeroizing::new(serde_json::to_vec(message)?);
        let items = ["sottovoce/v1 import".as_bytes(), system.as_bytes(), name.as_bytes(), &record];
        Ok(Self(u128::from_be_bytes(fingerprint(&items))))
    }

    /// The identity of a message that was said in a store of this format, under a number.
    pub fn at_home(scope: &Scope, seq: u64, message: &ChatMessage) -> serde_json::Result<Self> {
        Self::new(SOTTOVOCE, &format!("{scope}#{seq}"), message)
    }

    /// The identity of a stored message: the one that it carries, or the one that it has at home.
    pub(crate) fn of_stored(scope: &Scope, seq: u64, message: &ChatMessage) -> Option<Self> {
        Self::of(message).or_else(|| Self::at_home(scope, seq, message).ok())
    }

    /// The identity that an imported message carries; `None` for any other message.
    pub(crate) fn of(message: &ChatMessage) -> Option<Self> {
        let (_, digits) = message.metadata.get(IMPORTED_FROM)?.rsplit_once(':')?;
        digits.parse().ok()
    }

    /// Stores the identity in the message.
    pub(crate) fn mark(self, message: &mut ChatMessage, system: &str) {
        message.metadata.insert(IMPORTED_FROM.to_owned(), format!("{system}:{self}"));
    }

    /// The identity as bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The identity with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Accepts the digits in either case.
impl FromStr for Origin {
    type Err = Error;

    fn from_str(digits: &str) -> Result<Self, Error> {
        let exact = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let number = exact.then(|| u128::from_str_radix(digits, 16).ok()).flatten();
        let reason = "a message's origin is 32 hexadecimal digits";
        number.map(Self).ok_or(Error::InvalidMessage { reason })
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Digits)
    }
}

/// Parses an origin without copying its text.
struct Digits;

impl serde::de::Visitor<'_> for Digits {
    type Value = Origin;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("32 hexadecimal digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Origin, E> {
        text.parse().map_err(|_| E::custom("not an origin"))
    }
}

/// The most digests in the list, 128 MiB of them, which is read whole. Messages beyond it are forgotten but not listed.
const MOST_TOMBSTONES: usize = 8_000_000;

/// Length of a revision in bytes.
const REVISION_LENGTH: usize = 8;

/// What stands between the parts of the list: a digest that no message has.
const BETWEEN: [u8; 16] = [0; 16];

/// The list at one revision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportTombstones {
    pub(crate) rev: u64,
    /// What somebody wanted forgotten.
    pub(crate) origins: BTreeSet<Origin>,
    /// What limits removed. It does not come back either, but other devices and exports may keep it.
    pub(crate) expired: BTreeSet<Origin>,
    /// In the default conversation's list: what somebody wanted forgotten of those that were removed, by their digests.
    pub(crate) removed: BTreeMap<[u8; 16], BTreeSet<Origin>>,
}

impl ImportTombstones {
    /// Parses the document: the revision, left out if it is 0, then the digests, sorted and unique. After a digest of
    /// zeros, those of messages that limits removed follow in the same way, and then, each after another, the digest of
    /// every removed conversation with its messages'.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (rev, rest) = match bytes.split_first_chunk::<REVISION_LENGTH>() {
            Some((rev, rest)) if bytes.len() % 16 == REVISION_LENGTH => {
                (u64::from_be_bytes(*rev), rest)
            }
            _ => (0, bytes),
        };
        let (digests, rest) = rest.as_chunks();
        let set = |part: &[[u8; 16]]| part.iter().copied().map(Origin::from_bytes).collect();
        let mut parts = digests.split(|digest| *digest == BETWEEN);
        let mut parsed = Self { rev, ..Self::default() };
        parsed.origins = parts.next().map(set).unwrap_or_default();
        parsed.expired = parts.next().map(set).unwrap_or_default();
        let removed = parts.filter_map(|part| part.split_first());
        parsed.removed = removed.map(|(id, part)| (*id, set(part))).collect();
        (rest.is_empty() && parsed.to_bytes() == bytes).then_some(parsed)
    }

    /// Whether somebody wanted the message forgotten, also with a whole conversation.
    pub(crate) fn is_unwanted(&self, origin: Origin) -> bool {
        let mut removed = self.removed.values();
        self.origins.contains(&origin) || removed.any(|origins| origins.contains(&origin))
    }

    /// All that somebody wanted forgotten, also with whole conversations.
    pub(crate) fn unwanted(self) -> BTreeSet<Origin> {
        self.removed.into_values().flatten().chain(self.origins).collect()
    }

    /// Whether an import may not bring the message back.
    pub(crate) fn has(&self, origin: Origin) -> bool {
        self.expired.contains(&origin) || self.is_unwanted(origin)
    }

    /// How many digests there are.
    pub(crate) fn len(&self) -> usize {
        let removed: usize = self.removed.values().map(BTreeSet::len).sum();
        self.origins.len() + self.expired.len() + removed
    }

    /// Adds what another list has. Returns whether that was anything, and logs what there is no room for.
    pub(crate) fn take(&mut self, more: &Self) -> bool {
        let mut changed = false;
        let wanted = more.origins.iter().map(|origin| (*origin, true));
        for (origin, is_wanted) in wanted.chain(more.expired.iter().map(|origin| (*origin, false)))
        {
            if self.origins.contains(&origin) || !is_wanted && self.expired.contains(&origin) {
                continue;
            }
            let was_expired = is_wanted && self.expired.remove(&origin);
            if !was_expired && self.len() >= MOST_TOMBSTONES {
                tracing::warn!("the list of forgotten messages is full: some may come back");
                return changed;
            }
            let part = if is_wanted { &mut self.origins } else { &mut self.expired };
            changed |= part.insert(origin);
        }
        for (id, origins) in &more.removed {
            let has_room = self.len() + origins.len() <= MOST_TOMBSTONES;
            let known = self.removed.entry(*id).or_default();
            if !has_room && !origins.is_subset(known) {
                tracing::warn!("the list of forgotten messages is full: some may come back");
                return changed;
            }
            let before = known.len();
            known.extend(origins);
            changed |= known.len() > before;
        }
        changed
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let rev = self.rev.to_be_bytes();
        let mut bytes = Vec::with_capacity(REVISION_LENGTH + 16 * (self.len() + 1));
        bytes.extend(rev.into_iter().filter(|_| self.rev > 0));
        bytes.extend(self.origins.iter().flat_map(|origin| origin.to_bytes()));
        if !self.expired.is_empty() || !self.removed.is_empty() {
            bytes.extend(BETWEEN);
            bytes.extend(self.expired.iter().flat_map(|origin| origin.to_bytes()));
        }
        for (id, origins) in &self.removed {
            bytes.extend(BETWEEN.iter().chain(id));
            bytes.extend(origins.iter().flat_map(|origin| origin.to_bytes()));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatRole;

    fn message(text: &str) -> ChatMessage {
        ChatMessage::at(ChatRole::User, text, "2025-08-24T16:36:25.123Z".parse().unwrap())
    }

    #[test]
    fn a_message_tells_its_origin_and_nothing_else_does() {
        let mut imported = message("x");
        let origin = Origin::new("elara", "a.json", &imported).unwrap();
        assert_eq!(Origin::of(&imported), None);
        origin.mark(&mut imported, "elara");
        assert_eq!(Origin::of(&imported), Some(origin));
        assert_eq!(Origin::from_bytes(origin.to_bytes()), origin);
        for other in ["", "elara", "elara:", "elara:1", &format!("elara:+{:031x}", 1)] {
            assert_eq!(Origin::of(&message("x").with_metadata(IMPORTED_FROM, other)), None);
        }
    }

    #[test]
    fn the_system_the_name_and_every_field_count() {
        let origin =
            |system, name, message: &ChatMessage| Origin::new(system, name, message).unwrap();
        let plain = origin("elara", "a.json", &message("x"));
        assert_eq!(origin("elara", "a.json", &message("x")), plain);
        assert_ne!(origin("mimir", "a.json", &message("x")), plain);
        assert_ne!(origin("elara", "b.json", &message("x")), plain);
        assert_ne!(origin("elara", "a.json", &message("y")), plain);
        assert_ne!(origin("elara", "a.json", &message("x").with_metadata("a", "b")), plain);
    }

    /// If this digest changed, the next import would duplicate every message that was ever imported.
    #[test]
    fn an_origin_is_what_the_format_says() {
        let origin =
            Origin::new("elara", "20250824T163625123Z_0001_user.json", &message("x")).unwrap();
        assert_eq!(format!("{:032x}", origin.0), "0cb1213d75e884ea2c6d040c6aed4a57");
    }
}
