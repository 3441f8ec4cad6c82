//! Keys: their sources, their ids, and sealing with them.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use sottovoce_cipher::Cipher;
use zeroize::Zeroizing;

use super::envelope::{AssociatedData, Envelope, line};
use super::passphrase::{Argon2Params, KeyBytes, Passphrase, Salt, digest};
use crate::error::{Error, Result};

/// The key string of the sample configuration. It is public, so nothing is ever sealed under it.
pub const PLACEHOLDER_KEY: &str = "replace-me-before-deployment";

/// A 256-bit key, or a passphrase from which keys are derived. It is wiped when dropped, cannot be cloned, and
/// `Debug` does not show it.
pub struct EncryptionKey {
    material: Material,
}

enum Material {
    Secret(KeyBytes),
    File(KeyBytes),
    Passphrase(Passphrase),
}

/// How a store's key list says that a key is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derivation {
    Sha256,
    File,
    Argon2id(Argon2Params),
}

impl Derivation {
    /// The name in the key list.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::File => "file",
            Self::Argon2id(_) => "argon2id",
        }
    }
}

impl EncryptionKey {
    /// The key of a secret string: the SHA-256 of its UTF-8 bytes. The key is as strong as the string, so use a long
    /// random one.
    ///
    /// # Errors
    /// [`Error::EmptyKey`] for an empty or blank string, [`Error::PlaceholderKey`] for [`PLACEHOLDER_KEY`].
    pub fn from_secret(secret: &str) -> Result<Self> {
        check_words(secret, Error::EmptyKey)?;
        Ok(Self { material: Material::Secret(digest(secret)) })
    }

    /// A passphrase. Each store derives its own key from the passphrase's UTF-8 bytes and the store's own salt, with
    /// Argon2id (RFC 9106) over 64 MiB in 3 passes. This takes a few tenths of a second each time a store is opened. The
    /// words count in their composed form (NFC), however a keyboard writes them.
    /// Share one value among the stores of a folder, and the key is derived once for all. It also opens a store that
    /// was created with the same text as a [secret](Self::from_secret).
    ///
    /// # Errors
    /// [`Error::EmptyPassphrase`] for an empty or blank one, [`Error::PlaceholderKey`] for [`PLACEHOLDER_KEY`].
    pub fn from_passphrase(passphrase: impl Into<Zeroizing<String>>) -> Result<Self> {
        let passphrase = passphrase.into();
        check_words(&passphrase, Error::EmptyPassphrase)?;
        Ok(Self { material: Material::Passphrase(Passphrase::new(passphrase)) })
    }

    /// Parses the text of a key file: 64 hexadecimal digits, then at most one line ending. `None` for anything else.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.strip_suffix('\n').unwrap_or(text);
        let digits = digits.strip_suffix('\r').unwrap_or(digits);
        let mut bytes = KeyBytes::default();
        if digits.len() != 64 || !decode_hex(digits.as_bytes(), bytes.as_mut_slice()) {
            return None;
        }
        Some(Self { material: Material::File(bytes) })
    }

    /// A new key from the operating system's randomness.
    ///
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn generate() -> Result<Self> {
        let mut bytes = KeyBytes::default();
        random(bytes.as_mut_slice())?;
        Ok(Self { material: Material::File(bytes) })
    }

    /// The text of a key file for this key; `None` for a passphrase, whose key differs in each store.
    pub fn to_hex(&self) -> Option<Zeroizing<String>> {
        match &self.material {
            Material::Secret(bytes) | Material::File(bytes) => Some(hex_line(bytes)),
            Material::Passphrase(_) => None,
        }
    }

    /// The derivation that a new store's key list names.
    pub(crate) fn derivation(&self) -> Derivation {
        match self.material {
            Material::Secret(_) => Derivation::Sha256,
            Material::File(_) => Derivation::File,
            Material::Passphrase(_) => Derivation::Argon2id(Argon2Params::USUAL),
        }
    }

    /// Derives the key for the list of a new store.
    pub(crate) fn make(&self, salt: &Salt) -> Result<KeyBytes> {
        match (&self.material, self.derivation()) {
            (Material::Passphrase(passphrase), Derivation::Argon2id(cost)) => {
                passphrase.derive(cost, salt).ok_or(Error::NoMemory)
            }
            _ => Ok(self.unsalted()),
        }
    }

    /// Derives the key of a store whose key list names this derivation, and checks whether it fits. `None` if this is
    /// not that key; an error if there is not enough memory to derive it.
    pub(crate) fn made_as(
        &self,
        derivation: Derivation,
        salt: &Salt,
        fits: impl Fn(&KeyBytes) -> bool,
    ) -> Result<Option<KeyBytes>> {
        match (&self.material, derivation) {
            (Material::Secret(bytes) | Material::File(bytes), _) => {
                Ok(Some(bytes.clone()).filter(fits))
            }
            (Material::Passphrase(passphrase), Derivation::Argon2id(cost)) => {
                let bytes = passphrase.derive(cost, salt).ok_or(Error::NoMemory)?;
                Ok(Some(bytes).filter(fits))
            }
            (Material::Passphrase(passphrase), Derivation::Sha256) => {
                Ok(passphrase.digests().into_iter().find(fits))
            }
            (Material::Passphrase(_), Derivation::File) => Ok(None),
        }
    }

    /// The key without any salt.
    pub(crate) fn unsalted(&self) -> KeyBytes {
        match &self.material {
            Material::Secret(bytes) | Material::File(bytes) => bytes.clone(),
            Material::Passphrase(passphrase) => {
                let [given, _] = passphrase.digests();
                given
            }
        }
    }

    /// Whether deriving the key needs a store's salt.
    pub(crate) fn needs_salt(&self) -> bool {
        matches!(self.material, Material::Passphrase(_))
    }
}

fn check_words(words: &str, empty: Error) -> Result<()> {
    match words.trim() {
        "" => Err(empty),
        PLACEHOLDER_KEY => Err(Error::PlaceholderKey),
        _ => Ok(()),
    }
}

/// A key in the format of key files.
pub(crate) fn hex_line(bytes: &KeyBytes) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(65));
    text.extend(bytes.iter().flat_map(|byte| hex_digits(*byte)));
    text.push('\n');
    text
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(redacted)")
    }
}

/// Overwrites the parts of a deciphered text that are left on the stack.
#[inline(never)]
fn bleach() {
    std::hint::black_box(&mut [0_u8; 1 << 14]);
}

/// Fills the buffer with random bytes of the operating system.
pub(crate) fn random(buffer: &mut [u8]) -> Result<()> {
    getrandom::fill(buffer).map_err(|_| Error::NoRandomness)
}

/// A key as one store uses it, with the id that the store's salt gives it.
pub(crate) struct SealingKey {
    id: String,
    material: KeyBytes,
    cipher: Cipher,
    entropy: fn(&mut [u8]) -> Result<()>,
}

impl SealingKey {
    /// The key as a store with this salt uses it.
    pub(crate) fn new(bytes: &KeyBytes, salt: &Salt) -> Self {
        Self::under(bytes, derived::<16>(bytes, salt, &[b"sottovoce/v1 kid"]))
    }

    /// The key under an id that a record claims. For reading without the salt.
    pub(crate) fn under_id(key: &EncryptionKey, id: String) -> Self {
        Self::under(&key.unsalted(), id)
    }

    /// The key under a known id.
    pub(crate) fn under(bytes: &KeyBytes, id: String) -> Self {
        Self { id, material: bytes.clone(), cipher: Cipher::new(bytes), entropy: random }
    }

    /// A name for these bytes that only the key's owner can compute: HKDF-SHA256 with 32 bytes of output.
    pub(crate) fn pseudonym(&self, salt: &Salt, of: &[u8]) -> String {
        derived::<32>(&self.material, salt, &[b"sottovoce/v1 pseudonym ", of])
    }

    /// A proof that the writer had this key, for an id that does not come from this salt.
    pub(crate) fn proof(bytes: &KeyBytes, salt: &Salt, id: &str) -> String {
        derived::<16>(bytes, salt, &[b"sottovoce/v1 adopted ", id.as_bytes()])
    }

    /// The seal of a key list, which only a holder of the key can compute. `keys` is the list as JSON.
    pub(crate) fn vault_seal(bytes: &KeyBytes, salt: &Salt, keys: &[u8]) -> String {
        derived::<32>(bytes, salt, &[b"sottovoce/v1 vault ", keys])
    }

    /// The key's id: 32 lower-case hexadecimal digits. Differs between keys and between stores.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The key's bytes, for deriving other keys.
    pub(super) fn material(&self) -> &[u8] {
        self.material.as_slice()
    }

    /// Seals bytes into an envelope line with this associated data.
    pub(crate) fn seal(
        &self,
        associated: &AssociatedData<'_>,
        plaintext: &[u8],
    ) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        associated.encode(&self.id, &mut data);
        self.seal_beside(&data, plaintext)
    }

    fn nonce(&self) -> Result<[u8; 12]> {
        let mut nonce = [0; 12];
        (self.entropy)(&mut nonce)?;
        Ok(nonce)
    }

    fn seal_beside(&self, associated: &[u8], plaintext: &[u8]) -> Result<Vec<u8>> {
        let nonce = self.nonce()?;
        let mut buffer = Zeroizing::new(plaintext.to_vec());
        let tag = self
            .cipher
            .seal(&nonce, associated, &mut buffer)
            .ok_or(Error::InvalidMessage { reason: "it is too long for one seal" })?;
        Ok(line(&self.id, &nonce, &buffer, &tag))
    }

    /// Opens an envelope into the scratch buffer. `None` if it was not sealed with this key and associated data.
    pub(crate) fn open<'s>(
        &self,
        associated: &AssociatedData<'_>,
        envelope: &Envelope<'_>,
        scratch: &'s mut Scratch,
    ) -> Option<&'s mut Zeroizing<Vec<u8>>> {
        let Scratch { text, associated: data } = scratch;
        associated.encode(&self.id, data);
        self.open_beside(data, envelope, text).then_some(text)
    }

    fn open_beside(
        &self,
        associated: &[u8],
        envelope: &Envelope<'_>,
        text: &mut Zeroizing<Vec<u8>>,
    ) -> bool {
        // A growing buffer would leave its old bytes behind unwiped.
        if text.capacity() < envelope.length() {
            *text = Zeroizing::new(Vec::with_capacity(envelope.length().next_power_of_two()));
        }
        envelope.decode_into(text).is_some()
            && self.cipher.open(&envelope.iv, associated, text, &envelope.tag)
    }
}

/// Reused buffers for opening envelopes.
#[derive(Default)]
pub(crate) struct Scratch {
    text: Zeroizing<Vec<u8>>,
    associated: Vec<u8>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        bleach();
    }
}

debug_shows!(SealingKey: id);

/// Derives `N` bytes from a key, as hexadecimal digits.
fn derived<const N: usize>(bytes: &KeyBytes, salt: &Salt, info: &[&[u8]]) -> String {
    let mut derived = [0; N];
    // HKDF's only error is a length above 8,160 bytes.
    let _ = Hkdf::<Sha256>::new(Some(salt), bytes.as_slice()).expand_multi_info(info, &mut derived);
    derived.iter().flat_map(|byte| hex_digits(*byte)).collect()
}

fn hex_digits(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'))
}

fn decode_hex(digits: &[u8], into: &mut [u8]) -> bool {
    let value = |digit: u8| char::from(digit).to_digit(16);
    digits.as_chunks().0.iter().zip(into).all(|(&[high, low], byte)| {
        let parsed =
            value(high).zip(value(low)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        *byte = parsed.unwrap_or(0);
        parsed.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::envelope::Kind;

    #[test]
    fn empty_blank_and_placeholder_strings_are_refused() {
        assert!(matches!(EncryptionKey::from_secret(""), Err(Error::EmptyKey)));
        assert!(matches!(EncryptionKey::from_secret(" \n"), Err(Error::EmptyKey)));
        let blank = EncryptionKey::from_passphrase(" ".to_owned());
        assert!(matches!(blank, Err(Error::EmptyPassphrase)));
        for placeholder in [PLACEHOLDER_KEY, " replace-me-before-deployment\n"] {
            assert!(matches!(EncryptionKey::from_secret(placeholder), Err(Error::PlaceholderKey)));
            let passphrase = EncryptionKey::from_passphrase(placeholder.to_owned());
            assert!(matches!(passphrase, Err(Error::PlaceholderKey)));
        }
    }

    #[test]
    fn a_key_file_is_64_hex_digits_and_a_newline_and_nothing_else() {
        let key = EncryptionKey::generate().unwrap();
        let text = key.to_hex().unwrap();
        assert_eq!(text.len(), 65);
        assert_eq!(EncryptionKey::from_hex(&text).unwrap().unsalted(), key.unsalted());
        let digits = text.trim_end();
        for wrong in [
            "",
            "\n",
            digits.get(1..).unwrap(),
            &format!("{digits}0"),
            &format!(" {digits}"),
            &format!("{digits}\n\n"),
            &digits.replacen(char::is_alphanumeric, "g", 1),
        ] {
            assert!(EncryptionKey::from_hex(wrong).is_none());
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let key = EncryptionKey::from_secret("a secret of the house").unwrap();
        assert_eq!(format!("{key:?}"), "EncryptionKey(redacted)");
        let passphrase = EncryptionKey::from_passphrase("canary".to_owned()).unwrap();
        assert_eq!(format!("{passphrase:?}"), "EncryptionKey(redacted)");
        assert!(passphrase.to_hex().is_none());
        let sealing = SealingKey::new(&key.unsalted(), &[7; 32]);
        let shown = format!("{sealing:?}");
        assert!(shown.contains(sealing.id()) && shown.len() < 80, "{shown}");
    }

    #[test]
    fn without_randomness_nothing_is_sealed() {
        let key = EncryptionKey::from_secret("a secret of the house").unwrap();
        let mut sealing = SealingKey::new(&key.unsalted(), &[7; 32]);
        sealing.entropy = |_| Err(Error::NoRandomness);
        let associated = AssociatedData::record(&["default"], "x");
        assert!(matches!(sealing.seal(&associated, b"words"), Err(Error::NoRandomness)));
    }

    #[test]
    fn the_published_vectors_come_out_byte_for_byte() {
        let file = include_str!("../../tests/fixtures/vectors.json");
        let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
        let text = |of: &str, field: &str| vectors[of][field].as_str().unwrap().to_owned();
        let salt: [u8; 32] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        let key = EncryptionKey::from_secret(&text("record", "key_string")).unwrap();
        assert_eq!(key.to_hex().unwrap().trim_end(), text("record", "key"));
        let mut sealing = SealingKey::new(&key.unsalted(), &salt);
        assert_eq!(sealing.id(), text("record", "kid"));

        // A test vector's nonce is one repeated byte, or counts up from zero.
        type Fill = fn(&mut [u8]) -> Result<()>;
        let nonces: [(&str, Kind, Fill); 4] = [
            ("record", Kind::Record, |b| {
                b.iter_mut().zip(0..).for_each(|(b, i)| *b = i);
                Ok(())
            }),
            ("guild", Kind::Record, |b| {
                b.fill(12);
                Ok(())
            }),
            ("head", Kind::Head, |b| {
                b.fill(13);
                Ok(())
            }),
            ("forget", Kind::Record, |b| {
                b.fill(14);
                Ok(())
            }),
        ];
        for (of, kind, nonce) in nonces {
            let scope: Vec<String> = serde_json::from_value(vectors[of]["scope"].clone()).unwrap();
            let scope: Vec<&str> = scope.iter().map(String::as_str).collect();
            let name = text(of, "name");
            let associated = AssociatedData { kind, scope: &scope, name: &name };
            if of == "record" {
                let mut aad = Vec::new();
                associated.encode(sealing.id(), &mut aad);
                let hex: String = aad.iter().flat_map(|byte| hex_digits(*byte)).collect();
                assert_eq!(hex, text(of, "aad"));
            }
            sealing.entropy = nonce;
            let plaintext = text(of, "plaintext").into_bytes();
            let sealed = sealing.seal(&associated, &plaintext).unwrap();
            assert_eq!(String::from_utf8(sealed.clone()).unwrap(), text(of, "line") + "\n");
            let mut scratch = Scratch::default();
            let opened =
                sealing.open(&associated, &Envelope::parse(&sealed).unwrap(), &mut scratch);
            assert_eq!(**opened.unwrap(), plaintext);
        }
    }

    #[test]
    fn the_vectors_of_project_wycheproof_come_out_alike() {
        thread_local!(static NONCE: std::cell::Cell<[u8; 12]> = const { std::cell::Cell::new([0; 12]) });
        let file = include_str!("../../tests/fixtures/wycheproof-aes-gcm.json");
        let file: serde_json::Value = serde_json::from_str(file).unwrap();
        let (mut valid, mut invalid) = (0, 0);
        for test in file["tests"].as_array().unwrap() {
            let bytes = |field: &str| {
                let digits = test[field].as_str().unwrap().as_bytes();
                let mut bytes = vec![0; digits.len() / 2];
                assert!(decode_hex(digits, &mut bytes));
                bytes
            };
            let key = EncryptionKey::from_hex(test["key"].as_str().unwrap()).unwrap();
            let mut sealing = SealingKey::new(&key.unsalted(), &[7; 32]);
            let nonce: [u8; 12] = bytes("iv").try_into().unwrap();
            let (tag, aad, words) = (bytes("tag").try_into().unwrap(), bytes("aad"), bytes("msg"));
            let expected = line(sealing.id(), &nonce, &bytes("ct"), &tag);
            let (envelope, mut text) = (Envelope::parse(&expected).unwrap(), Zeroizing::default());
            let opened = sealing.open_beside(&aad, &envelope, &mut text);
            NONCE.set(nonce);
            sealing.entropy = |buffer| {
                buffer.copy_from_slice(&NONCE.get());
                Ok(())
            };
            let sealed = sealing.seal_beside(&aad, &words).unwrap();
            if test["result"] == "valid" {
                valid += 1;
                assert!(opened && *text == words, "{test}");
                assert_eq!(sealed, expected, "{test}");
            } else {
                invalid += 1;
                assert!(!opened && sealed != expected, "{test}");
            }
        }
        assert_eq!((valid, invalid), (39, 27));
    }

    #[test]
    fn a_million_seals_have_a_million_nonces() {
        let key = EncryptionKey::from_secret("a secret of the house").unwrap();
        let sealing = SealingKey::new(&key.unsalted(), &[7; 32]);
        let mut nonces = std::collections::HashSet::with_capacity(1_000_000);
        for _ in 0..999_000 {
            assert!(nonces.insert(sealing.nonce().unwrap()));
        }
        for _ in 0..1_000 {
            let sealed = sealing.seal_beside(b"", b"").unwrap();
            assert!(nonces.insert(Envelope::parse(&sealed).unwrap().iv));
        }
    }
}
