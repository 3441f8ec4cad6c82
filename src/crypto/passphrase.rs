//! Passphrases: slow derivation of keys from them.

use std::sync::{Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;
use zeroize::{Zeroize, Zeroizing};

/// The salt of a store.
pub(crate) type Salt = [u8; 32];

/// The bytes of a key.
pub(crate) type KeyBytes = Zeroizing<[u8; 32]>;

/// The cost parameters of a derivation. The default is RFC 9106's second recommendation, but with one lane, because
/// small machines have few cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Argon2Params {
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
    pub(crate) lanes: u32,
}

impl Argon2Params {
    pub(crate) const USUAL: Self = Self { memory_kib: 65_536, passes: 3, lanes: 1 };

    /// Checks parameters from a file. `None` if they are too weak, or would exhaust the machine.
    pub(crate) fn checked(memory_kib: u32, passes: u32, lanes: u32) -> Option<Self> {
        let is_bearable = (19_456..=1_048_576).contains(&memory_kib)
            && (1..=16).contains(&passes)
            && (1..=4).contains(&lanes);
        is_bearable.then_some(Self { memory_kib, passes, lanes })
    }
}

/// A passphrase with the keys derived from it. Everything is wiped when dropped.
pub(crate) struct Passphrase {
    /// The words as given, of which secret strings are made.
    given: Zeroizing<String>,
    /// The same composed (NFC), of which keys are derived. Keyboards and systems differ in how they write the same letter.
    composed: Zeroizing<String>,
    /// One key for each store, and for each change of keys in it. The lock is held during a derivation, so that other callers
    /// wait for its result.
    derived: Mutex<Vec<Derived>>,
}

struct Derived {
    cost: Argon2Params,
    salt: Salt,
    bytes: KeyBytes,
}

impl Passphrase {
    pub(crate) fn new(given: Zeroizing<String>) -> Self {
        Self { composed: form(given.nfc()), given, derived: Mutex::default() }
    }

    /// Derives the Argon2id key once and caches it. `None` if there is not enough memory.
    pub(crate) fn derive(&self, cost: Argon2Params, salt: &Salt) -> Option<KeyBytes> {
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |one: &&Derived| one.cost == cost && one.salt == *salt;
        if let Some(known) = derived.iter().find(is_known) {
            return Some(known.bytes.clone());
        }
        let Argon2Params { memory_kib, passes, lanes } = cost;
        let params = Params::new(memory_kib, passes, lanes, Some(32)).ok()?;
        let mut blocks = Zeroizing::new(Vec::new());
        blocks.try_reserve_exact(params.block_count()).ok()?;
        blocks.resize(params.block_count(), Block::default());
        let (mut bytes, words) = (KeyBytes::default(), self.composed.as_bytes());
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(
                words,
                salt,
                bytes.as_mut_slice(),
                blocks.as_mut_slice(),
            )
            .ok()?;
        derived.push(Derived { cost, salt: *salt, bytes: bytes.clone() });
        Some(bytes)
    }

    /// The key of a store that was created with this text as a secret string: of the words as given, and composed.
    pub(crate) fn digests(&self) -> [KeyBytes; 2] {
        [&self.given, &self.composed].map(|words| digest(words))
    }
}

/// A form of words, written once: a text that grows would leave copies behind.
fn form(letters: impl Iterator<Item = char> + Clone) -> Zeroizing<String> {
    let length = letters.clone().map(char::len_utf8).sum();
    let mut form = Zeroizing::new(String::with_capacity(length));
    form.extend(letters);
    form
}

/// The SHA-256 of a text.
pub(crate) fn digest(text: &str) -> KeyBytes {
    let mut digest = Sha256::digest(text.as_bytes());
    let bytes = Zeroizing::new(digest.into());
    digest.as_mut_slice().zeroize();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::{AssociatedData, ParamsBuilder};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_vector_of_the_standard_comes_out() {
        // RFC 9106, section 5.3.
        let params = ParamsBuilder::new()
            .m_cost(32)
            .t_cost(3)
            .p_cost(4)
            .data(AssociatedData::new(&[4; 12]).unwrap())
            .output_len(32)
            .build()
            .unwrap();
        let argon = Argon2::new_with_secret(&[3; 8], Algorithm::Argon2id, Version::V0x13, params);
        let (mut blocks, mut tag) = (vec![Block::default(); 32], [0; 32]);
        argon
            .unwrap()
            .hash_password_into_with_memory(&[1; 32], &[2; 16], &mut tag, &mut blocks)
            .unwrap();
        let expected = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659";
        assert_eq!(hex(&tag), expected);
    }

    #[test]
    fn another_implementation_derives_the_same_keys() {
        // Computed with the reference implementation in C.
        let salt = std::array::from_fn(|at| u8::try_from(at).unwrap());
        for (text, cost, expected) in [
            (
                "correct horse battery staple",
                Argon2Params::USUAL,
                "6ed12d7d594a6ae56c7ad1725982ae0d41317bd2b239dd1e0916d913d4da0757",
            ),
            (
                "Passwört, 2 lanes",
                Argon2Params::checked(19_456, 2, 2).unwrap(),
                "7076e8ac24ea8578fdf4e8d09d2bba1d138f97be21d48aab676cd5de79852de2",
            ),
        ] {
            let passphrase = Passphrase::new(Zeroizing::new(text.to_owned()));
            assert_eq!(hex(&*passphrase.derive(cost, &salt).unwrap()), expected);
        }
    }

    #[test]
    fn a_cost_that_is_too_low_or_too_high_is_none() {
        assert_eq!(Argon2Params::checked(65_536, 3, 1), Some(Argon2Params::USUAL));
        for (memory, passes, lanes) in [(19_456, 1, 1), (1_048_576, 16, 4)] {
            assert!(Argon2Params::checked(memory, passes, lanes).is_some());
        }
        for (memory, passes, lanes) in [
            (19_455, 3, 1),
            (1_048_577, 3, 1),
            (65_536, 0, 1),
            (65_536, 17, 1),
            (65_536, 3, 0),
            (65_536, 3, 5),
            (u32::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(Argon2Params::checked(memory, passes, lanes), None);
        }
    }

    #[test]
    fn what_was_derived_once_is_remembered_for_its_salt_and_cost_alone() {
        let passphrase = Passphrase::new(Zeroizing::new("words".to_owned()));
        let cost = Argon2Params::checked(19_456, 1, 1).unwrap();
        let first = passphrase.derive(cost, &[1; 32]).unwrap();
        assert_eq!(passphrase.derive(cost, &[1; 32]).unwrap(), first);
        assert_eq!(passphrase.derived.lock().unwrap().len(), 1);
        let other = Argon2Params::checked(19_457, 1, 1).unwrap();
        assert_ne!(passphrase.derive(cost, &[2; 32]).unwrap(), first);
        assert_ne!(passphrase.derive(other, &[1; 32]).unwrap(), first);
    }

    #[test]
    fn words_are_the_same_however_a_keyboard_composes_them() {
        let (composed, decomposed) = ("Schl\u{fc}ssel", "Schlu\u{308}ssel");
        let cost = Argon2Params { memory_kib: 64, passes: 1, lanes: 1 };
        let of = |words: &str| Passphrase::new(Zeroizing::new(words.to_owned()));
        let derived = |words| of(words).derive(cost, &[1; 32]).unwrap();
        assert_eq!(derived(decomposed), derived(composed));
        assert!(of(decomposed).digests().contains(&digest(decomposed)));
        assert!(of(decomposed).digests().contains(&digest(composed)));
    }
}
