//! The envelope line: the exact bytes of a sealed file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The kind of a sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Record,
    Head,
    Calibration,
    Imports,
    Presets,
    Profile,
    Snapshot,
    Artifact,
    ArtifactMeta,
    Backup,
    Recall,
    Sync,
    SyncHead,
    SyncSegment,
    SyncPiece,
    Teams,
    TeamRecord,
    Threads,
    Tombstones,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Head => "head",
            Self::Calibration => "calibration",
            Self::Imports => "imports",
            Self::Presets => "presets",
            Self::Profile => "profile",
            Self::Snapshot => "snapshot",
            Self::Artifact => "artifact",
            Self::ArtifactMeta => "artifact-meta",
            Self::Backup => "backup",
            Self::Recall => "recall",
            Self::Sync => "sync",
            Self::SyncHead => "sync-head",
            Self::SyncSegment => "sync-segment",
            Self::SyncPiece => "sync-piece",
            Self::Teams => "teams",
            Self::TeamRecord => "team-record",
            Self::Threads => "threads",
            Self::Tombstones => "tombstones",
        }
    }
}

/// The associated data of an envelope: kind, scope and file name. The envelope opens with exactly these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AssociatedData<'a> {
    pub(crate) kind: Kind,
    pub(crate) scope: &'a [&'a str],
    pub(crate) name: &'a str,
}

impl<'a> AssociatedData<'a> {
    pub(crate) fn record(scope: &'a [&'a str], name: &'a str) -> Self {
        let kind = Kind::Record;
        Self { kind, scope, name }
    }

    pub(crate) fn head(scope: &'a [&'a str]) -> Self {
        let (kind, name) = (Kind::Head, "head");
        Self { kind, scope, name }
    }

    /// The associated data of a file.
    pub(crate) fn of(kind: Kind, scope: &'a [&'a str], name: &'a str) -> Self {
        Self { kind, scope, name }
    }

    /// Writes the key id and each item with its length before it, so that different values have different encodings.
    pub(crate) fn encode(&self, key_id: &str, data: &mut Vec<u8>) {
        data.clear();
        let items = ["sottovoce/v1", key_id, self.kind.as_str()];
        for item in items.iter().chain(self.scope).chain([&self.name]) {
            // Ids and names are limited to hundreds of bytes where they are created.
            let length = u32::try_from(item.len()).unwrap_or(u32::MAX);
            data.extend_from_slice(&length.to_be_bytes());
            data.extend_from_slice(item.as_bytes());
        }
    }
}

/// Why bytes are not an envelope of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// An envelope of a newer format.
    Newer(u64),
    /// An envelope without version and key id, as the system before this format wrote it.
    LegacyFormat,
    /// Anything else.
    Not(&'static str),
}

/// The parts of an envelope line that was checked.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) key_id: &'a str,
    pub(crate) iv: [u8; 12],
    pub(crate) tag: [u8; 16],
    ciphertext: &'a [u8],
}

const OPENING: &str = r#"{"v":1,"alg":"AES-256-GCM","kid":""#;
const IV: &str = r#"","iv":""#;
const CIPHERTEXT: &str = r#"","ciphertext":""#;
const TAG: &str = r#"","tag":""#;
const CLOSING: &str = "\"}\n";
/// In hexadecimal digits.
const KEY_ID_LENGTH: usize = 32;
/// Length of the iv and of the tag in base64.
const IV_LENGTH: usize = 16;
const TAG_LENGTH: usize = 24;

impl<'a> Envelope<'a> {
    /// Parses the exact format: these fields in this order, no other white space, canonical padded base64, one
    /// newline. The ciphertext's base64 is checked when it is [decoded](Self::decode_into).
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        use Malformed::Not;
        let Some(rest) = bytes.strip_prefix(OPENING.as_bytes()) else {
            return Err(otherwise(bytes));
        };
        // Everything except the ciphertext has a fixed length, so no search is needed.
        let missing = || Not("a field is missing");
        let field = |rest: &'a [u8], length, next: &str| {
            let (value, rest) = rest.split_at_checked(length)?;
            Some((value, rest.strip_prefix(next.as_bytes())?))
        };
        let (key_id, rest) = field(rest, KEY_ID_LENGTH, IV).ok_or_else(missing)?;
        let (iv, rest) = field(rest, IV_LENGTH, CIPHERTEXT).ok_or_else(missing)?;
        let rest = rest
            .strip_suffix(CLOSING.as_bytes())
            .ok_or(Not("it does not end as an envelope does"))?;
        let (rest, tag) = rest
            .len()
            .checked_sub(TAG_LENGTH)
            .and_then(|end| rest.split_at_checked(end))
            .ok_or_else(missing)?;
        let ciphertext = rest.strip_suffix(TAG.as_bytes()).ok_or_else(missing)?;
        let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let key_id = str::from_utf8(key_id)
            .ok()
            .filter(|id| id.as_bytes().iter().all(hex))
            .ok_or(Not("its key id is not 32 hexadecimal digits"))?;
        Ok(Self {
            key_id,
            iv: fixed(iv).ok_or(Not("its iv is not 12 bytes of base64"))?,
            tag: fixed(tag).ok_or(Not("its tag is not 16 bytes of base64"))?,
            ciphertext,
        })
    }

    /// An upper bound of the number of encrypted bytes.
    pub(crate) fn length(&self) -> usize {
        base64::decoded_len_estimate(self.ciphertext.len())
    }

    /// Decodes the encrypted bytes into a buffer of that [length](Self::length). `None` if they are not canonical
    /// base64.
    pub(crate) fn decode_into(&self, buffer: &mut Vec<u8>) -> Option<()> {
        buffer.clear();
        BASE64.decode_vec(self.ciphertext, buffer).ok()
    }
}

fn fixed<const N: usize>(base64: &[u8]) -> Option<[u8; N]> {
    // The decoder demands room for as many bytes as 24 characters may encode.
    let mut buffer = [0; 18];
    let length = BASE64.decode_slice(base64, &mut buffer).ok()?;
    buffer.get(..length)?.try_into().ok()
}

/// Classifies bytes that do not begin like an envelope.
fn otherwise(bytes: &[u8]) -> Malformed {
    let Ok(text) = str::from_utf8(bytes) else {
        return Malformed::Not("it is not text");
    };
    if text.is_empty() {
        return Malformed::Not("it is empty");
    }
    if text.starts_with('\u{feff}') {
        return Malformed::Not("it starts with a byte order mark");
    }
    let version = text
        .strip_prefix(r#"{"v":"#)
        .and_then(|rest| rest.split_once(','))
        .and_then(|(version, _)| version.parse().ok());
    match version {
        Some(version) if version > 1 => Malformed::Newer(version),
        _ if text.starts_with(r#"{"alg":"AES-256-GCM","iv":"#) => Malformed::LegacyFormat,
        _ => Malformed::Not("it is not an envelope"),
    }
}

/// Writes an envelope line.
pub(crate) fn line(key_id: &str, iv: &[u8; 12], ciphertext: &[u8], tag: &[u8; 16]) -> Vec<u8> {
    let mut line = String::with_capacity(160 + ciphertext.len().div_ceil(3) * 4);
    line.push_str(OPENING);
    line.push_str(key_id);
    line.push_str(IV);
    BASE64.encode_string(iv, &mut line);
    line.push_str(CIPHERTEXT);
    BASE64.encode_string(ciphertext, &mut line);
    line.push_str(TAG);
    BASE64.encode_string(tag, &mut line);
    line.push_str(CLOSING);
    line.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{EncryptionKey, Scratch, SealingKey};

    const ASSOCIATED: AssociatedData<'static> = AssociatedData {
        kind: Kind::Record,
        scope: &["default"],
        name: "20250824T163625123Z_0001_user.json",
    };

    fn sealed() -> (SealingKey, Vec<u8>) {
        let key = EncryptionKey::from_secret("a secret of the house").unwrap();
        let key = SealingKey::new(&key.unsalted(), &[1; 32]);
        let line = key.seal(&ASSOCIATED, b"plain words").unwrap();
        (key, line)
    }

    fn opens(key: &SealingKey, line: &[u8]) -> bool {
        Envelope::parse(line).ok().filter(|envelope| envelope.key_id == key.id()).is_some_and(
            |envelope| key.open(&ASSOCIATED, &envelope, &mut Scratch::default()).is_some(),
        )
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (key, mut line) = sealed();
        assert!(opens(&key, &line));
        for at in 0..line.len() {
            for bit in 0..8 {
                line[at] ^= 1 << bit;
                assert!(!opens(&key, &line), "byte {at}, bit {bit}");
                line[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn every_cut_and_every_addition_is_noticed() {
        let (key, line) = sealed();
        for length in 0..line.len() {
            assert!(!opens(&key, &line[..length]), "cut to {length}");
        }
        for tail in [&b"\n"[..], b" ", b"\0", b"{}"] {
            assert!(!opens(&key, &[&line, tail].concat()));
            assert!(!opens(&key, &[tail, &line].concat()));
        }
        assert!(!opens(&key, &["\u{feff}".as_bytes(), &line].concat()));
    }

    #[test]
    fn fields_removed_renamed_repeated_or_loosely_encoded_are_refused() {
        let (key, line) = sealed();
        let text = String::from_utf8(line).unwrap();
        let iv_at = text.find(r#""iv":""#).unwrap() + 6;
        for wrong in [
            text.replace(r#""v":1,"#, ""),
            text.replace(r#""alg":"AES-256-GCM","#, ""),
            text.replace("AES-256-GCM", "AES-128-GCM"),
            text.replace(r#""v":1"#, r#""v":0"#),
            text.replace(r#""v":1,"#, r#""v":1,"v":1,"#),
            text.replace(",", ", "),
            text.replace(r#""kid":""#, r#""kid":"0"#),
            text.replace(r#"=="}"#, r#""}"#),
            text.replace(r#"","ciphertext"#, r#"AAAA","ciphertext"#),
            format!("[{}]", text.trim_end()) + "\n",
            text.replacen(text.get(iv_at..iv_at + 4).unwrap(), "", 1),
        ] {
            assert_ne!(wrong, text);
            assert!(!opens(&key, wrong.as_bytes()), "{wrong}");
        }
        // The last character of a padded group has unused bits. Setting them would encode the same bytes differently.
        let loose = text.replacen(r#"=="}"#, "", 1);
        let last = loose.trim_end().chars().last().unwrap();
        let other = char::from(u8::try_from(last).unwrap() + 1);
        let loose = loose.trim_end().trim_end_matches(last).to_owned();
        assert!(!opens(&key, format!("{loose}{other}==\"}}\n").as_bytes()));
    }

    #[test]
    fn a_newer_version_and_the_legacy_format_are_distinguished_from_garbage() {
        let (_, line) = sealed();
        let newer = String::from_utf8(line).unwrap().replace(r#""v":1"#, r#""v":2"#);
        assert_eq!(Envelope::parse(newer.as_bytes()).unwrap_err(), Malformed::Newer(2));
        let ancestor = br#"{"alg":"AES-256-GCM","iv":"AAAA","ciphertext":"","tag":""}"#;
        assert_eq!(Envelope::parse(ancestor).unwrap_err(), Malformed::LegacyFormat);
        for rubbish in
            [&b""[..], b"{", b"\xff\xfe", b"{\"v\":-1,", b"{\"v\":0,", b"{\"v\":1,", b"{\"v\":1e9,"]
        {
            assert!(matches!(Envelope::parse(rubbish).unwrap_err(), Malformed::Not(_)));
        }
    }

    #[test]
    fn a_key_id_is_32_lower_case_digits_whoever_asks() {
        let (key, line) = sealed();
        let text = String::from_utf8(line).unwrap();
        let id = key.id();
        let (short, long) = (id.replacen(char::is_alphanumeric, "", 1), format!("{id}0"));
        let other = id.replacen(char::is_alphanumeric, "g", 1);
        for wrong in [&short, &long, &other, &"A".repeat(32), ""] {
            let changed = text.replace(id, wrong);
            assert!(Envelope::parse(changed.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hundred_thousand_brackets_are_refused_without_recursion() {
        let deep = "[".repeat(100_000);
        assert!(Envelope::parse(deep.as_bytes()).is_err());
        let deep = format!("{OPENING}{deep}");
        assert!(Envelope::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn a_calibrations_place_is_the_one_that_the_format_names() {
        let associated = AssociatedData::of(Kind::Calibration, &["dm", "42"], "calibration");
        let expected = b"\0\0\0\x0csottovoce/v1\0\0\0\x03kid\0\0\0\x0bcalibration\
            \0\0\0\x02dm\0\0\0\x0242\0\0\0\x0bcalibration";
        let mut data = b"of the one before".to_vec();
        associated.encode("kid", &mut data);
        assert_eq!(data, expected);
    }

    #[test]
    fn a_seal_opens_under_no_other_kind_scope_or_name() {
        let (key, line) = sealed();
        let envelope = Envelope::parse(&line).unwrap();
        let name = ASSOCIATED.name;
        for other in [
            AssociatedData { kind: Kind::Head, ..ASSOCIATED },
            AssociatedData { kind: Kind::Calibration, ..ASSOCIATED },
            AssociatedData { kind: Kind::Imports, ..ASSOCIATED },
            AssociatedData { scope: &["dm", "default"], ..ASSOCIATED },
            AssociatedData { scope: &["default", ""], ..ASSOCIATED },
            AssociatedData { scope: &[], ..ASSOCIATED },
            AssociatedData { name: &name.replace("user", "system"), ..ASSOCIATED },
            AssociatedData { name: &name.replace("0001", "0002"), ..ASSOCIATED },
        ] {
            assert!(key.open(&other, &envelope, &mut Scratch::default()).is_none(), "{other:?}");
        }
    }
}
