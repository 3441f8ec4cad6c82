//! A file of Elara, in any of the five formats that its versions wrote.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sottovoce::import::RefusalReason::{self, Corrupt, Undecryptable};
use sottovoce::{ChatMessage, ChatRole};
use zeroize::Zeroizing;

use super::key::ElaraKey;
use crate::fields::{json, time};

/// The names of the formats in reports.
const FIRST: &str = "v1";
const SECOND: &str = "v2";
const PLAINTEXT: &str = "plaintext";
const BARE: &str = "bare";
const DESIGN: &str = "design";

/// The fields of an envelope. A bare message has only `Content` of these.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "Alg", alias = "alg")]
    alg: Option<String>,
    #[serde(rename = "Iv", alias = "iv")]
    iv: Option<String>,
    #[serde(rename = "Ciphertext")]
    ciphertext: Option<String>,
    #[serde(rename = "ciphertext")]
    design_ciphertext: Option<String>,
    /// The ciphertext in the second format, or the message in a plaintext envelope.
    #[serde(rename = "Content", alias = "content", borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "Tag", alias = "tag")]
    tag: Option<String>,
    /// A field of this library's own records.
    kid: Option<IgnoredAny>,
}

/// The fields of a message.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "Role", alias = "role", borrow)]
    role: Option<&'a RawValue>,
    #[serde(rename = "Content", alias = "content", borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "TimestampUtc", alias = "timestampUtc")]
    timestamp: Option<String>,
    #[serde(rename = "Metadata", alias = "metadata", borrow)]
    metadata: Option<BTreeMap<String, &'a RawValue>>,
}

/// Reads a file. Accepts what Elara's own reader accepts, unknown fields included, and the format of its design
/// document.
pub(super) fn read(
    bytes: &[u8],
    keys: &[ElaraKey],
) -> Result<(ChatMessage, &'static str), RefusalReason> {
    let text = json::text(bytes)?;
    let envelope: Envelope<'_> = object(text)?;
    let Some(alg) = &envelope.alg else {
        return Ok((message(text)?, BARE));
    };
    if envelope.kid.is_some() {
        return Err(Corrupt("it is a record of Sottovoce's own"));
    }
    if alg.eq_ignore_ascii_case("PLAINTEXT") {
        let content = envelope.content.ok_or(Corrupt("its Content is missing"))?;
        return Ok((message(content.get())?, PLAINTEXT));
    }
    if !alg.eq_ignore_ascii_case("AES-256-GCM") {
        return Err(Corrupt("its Alg is neither AES-256-GCM nor PLAINTEXT"));
    }
    let (plaintext, form) = envelope.open(keys)?;
    let text = str::from_utf8(&plaintext).map_err(|_| Corrupt("its plaintext is not text"))?;
    Ok((message(text)?, form))
}

impl Envelope<'_> {
    fn open(&self, keys: &[ElaraKey]) -> Result<(Zeroizing<Vec<u8>>, &'static str), RefusalReason> {
        let of_content: Option<String> =
            self.content.and_then(|content| serde_json::from_str(content.get()).ok());
        let (ciphertext, form) = match (&self.ciphertext, &self.design_ciphertext, of_content) {
            (Some(text), None, None) => (decode(text), FIRST),
            (None, Some(text), None) => (decode(text), DESIGN),
            (None, None, Some(text)) => (decode(&text), SECOND),
            _ => return Err(Corrupt("it has no ciphertext, or more than one")),
        };
        let ciphertext = ciphertext.ok_or(Corrupt("its ciphertext is not base64"))?;
        let iv = fixed(self.iv.as_deref()).ok_or(Corrupt("its Iv is not 12 bytes of base64"))?;
        let tag = fixed(self.tag.as_deref()).ok_or(Corrupt("its Tag is not 16 bytes of base64"))?;
        let opened = keys.iter().find_map(|key| key.open(iv, &ciphertext, tag));
        Ok((opened.ok_or(Undecryptable)?, form))
    }
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    BASE64.decode(base64).ok()
}

fn fixed<const N: usize>(base64: Option<&str>) -> Option<[u8; N]> {
    decode(base64?)?.try_into().ok()
}

fn message(json: &str) -> Result<ChatMessage, RefusalReason> {
    let fields: Fields<'_> = object(json)?;
    let role = fields.role.and_then(|role| role_of(role.get()));
    let role = role.ok_or(Corrupt("its Role is not user, assistant or system"))?;
    let time = fields.timestamp.as_deref().and_then(time::parse);
    let (timestamp, offset) = time.ok_or(Corrupt("its TimestampUtc is not a time"))?;
    let content = fields.content.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
    let content = content.ok_or(Corrupt("its Content is not a text"))?;
    let mut message = ChatMessage::at(role, content, timestamp);
    message.offset_minutes = offset;
    message.metadata = fields
        .metadata
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| text_of(value.get()).map(|value| (name, value)))
        .collect();
    Ok(message)
}

/// Reads a role: its name in any letter case, or its number.
fn role_of(json: &str) -> Option<ChatRole> {
    match json {
        "0" => Some(ChatRole::User),
        "1" => Some(ChatRole::Assistant),
        "2" => Some(ChatRole::System),
        text => {
            let name: String = serde_json::from_str(text).ok()?;
            name.parse().ok().filter(|role| *role != ChatRole::Tool)
        }
    }
}

/// Converts a value of metadata: a text stays as it is, null is dropped, anything else becomes its JSON.
fn text_of(json: &str) -> Option<String> {
    match json {
        "null" => None,
        json => Some(serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())),
    }
}

fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, RefusalReason> {
    json::object(json, "its fields are not those of an Elara record")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_no_change_is_believed(
            at in 0..VECTOR.len(),
            with in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let mut bytes = VECTOR.as_bytes().to_vec();
            bytes.splice(at..=at, with);
            if let Ok((message, _)) = read(&bytes, &keys()) {
                prop_assert_eq!(message, taken(VECTOR).0);
            }
        }
    }

    const NEITHER: Result<(ChatMessage, &str), RefusalReason> = Err(Undecryptable);

    fn keys() -> [ElaraKey; 2] {
        [ElaraKey::from_secret("another key"), ElaraKey::from_secret("test-key")]
    }

    fn taken(text: &str) -> (ChatMessage, &'static str) {
        read(text.as_bytes(), &keys()).unwrap_or_else(|reason| panic!("{reason}: {text}"))
    }

    const VECTOR: &str = r#"{"Alg":"AES-256-GCM","Iv":"AAECAwQFBgcICQoL","Content":"yUpmCh6gKinhg1JUFUZYT/DNiHIK4P7q0a3X9ew2qnfX1qK/H4Wpg2YxvHXfeDsqazmn2GvhX8ldkb+nUuVE5YNUgdLyUwj/x5228L156mJilPGED9VraPEtDJDu+KV1xqRZ9g==","Tag":"ZMOuy0uHaecLKVtMtqpWhA=="}"#;
    const BARE_USER: &str = r#"{"Role":"User","Content":"hello","TimestampUtc":"2025-09-18T21:15:40.1234567+00:00","Metadata":null}"#;

    #[test]
    fn the_published_vector_opens_in_every_spelling() {
        let (expected, _) = taken(BARE_USER);
        assert_eq!(expected.content, "hello");
        assert_eq!(expected.timestamp, "2025-09-18T21:15:40.1234567Z".parse().unwrap());
        let first = VECTOR.replace("Content", "Ciphertext");
        for (text, form) in [
            (VECTOR.to_owned(), SECOND),
            (VECTOR.replace('+', r"\u002B"), SECOND),
            (VECTOR.replace("AES-256-GCM", "aes-256-Gcm"), SECOND),
            (format!("\u{feff}{VECTOR}\r\n"), SECOND),
            (VECTOR.replace(r#"{"Alg""#, r#"{"More":[1],"Alg""#), SECOND),
            (first.clone(), FIRST),
            (first.replace('+', r"\u002B"), FIRST),
            (
                first
                    .replace("Alg", "alg")
                    .replace("\"Iv", "\"iv")
                    .replace("Ciphertext", "ciphertext")
                    .replace("\"Tag", "\"tag"),
                DESIGN,
            ),
            (
                format!(r#"{{"Alg":"plaintext","Iv":null,"Content":{BARE_USER},"Tag":null}}"#),
                PLAINTEXT,
            ),
            (BARE_USER.to_owned(), BARE),
        ] {
            assert_eq!(taken(&text), (expected.clone(), form), "{text}");
        }
    }

    #[test]
    fn a_wrong_key_and_a_flipped_bit_look_alike() {
        let other = [ElaraKey::from_secret("test-kez")];
        assert_eq!(read(VECTOR.as_bytes(), &other), NEITHER);
        assert_eq!(read(VECTOR.as_bytes(), &[]), NEITHER);
        for (from, to) in [("yUpm", "yUpn"), ("AAEC", "AAED"), ("ZMOu", "ZMOv")] {
            assert_eq!(read(VECTOR.replace(from, to).as_bytes(), &keys()), NEITHER);
        }
    }

    #[test]
    fn a_role_is_a_name_in_any_case_or_its_number() {
        for (role, expected) in [
            ("0", ChatRole::User),
            ("1", ChatRole::Assistant),
            ("2", ChatRole::System),
            (r#""uSER""#, ChatRole::User),
            (r#""system""#, ChatRole::System),
        ] {
            let text = BARE_USER.replace(r#""User""#, role);
            assert_eq!(taken(&text).0.role, expected, "{role}");
        }
        for role in ["3", "-1", "0.0", "null", r#""tool""#, r#""""#, "[]", r#"["User"]"#] {
            let text = BARE_USER.replace(r#""User""#, role);
            assert!(matches!(read(text.as_bytes(), &[]), Err(Corrupt(_))), "{role}");
        }
    }

    #[test]
    fn metadata_is_text_by_name_whatever_it_was() {
        let text = BARE_USER.replace(
            r#""Metadata":null"#,
            r#""Metadata":{"a":"\u00fc","b":null,"c":3,"d":[1, "x"],"e":""}"#,
        );
        let metadata = &taken(&text).0.metadata;
        let expected = [("a", "ü"), ("c", "3"), ("d", r#"[1, "x"]"#), ("e", "")];
        let found: Vec<_> = metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, expected);
        assert!(taken(&BARE_USER.replace(r#","Metadata":null"#, "")).0.metadata.is_empty());
        assert!(taken(&BARE_USER.replace("null", "{}")).0.metadata.is_empty());
    }

    #[test]
    fn what_is_no_record_is_refused_with_a_reason() {
        let deep = "[".repeat(100_000);
        for wrong in [
            "",
            " \n",
            "\u{feff}",
            "null",
            "{}",
            VECTOR.get(..VECTOR.len() * 2 / 3).unwrap(),
            &format!("[{BARE_USER}]"),
            &format!("{BARE_USER}{BARE_USER}"),
            &format!(r#"{{"Alg":"PLAINTEXT","Content":[{BARE_USER}]}}"#),
            r#"{"Alg":"PLAINTEXT","Content":null}"#,
            r#"{"Alg":"PLAINTEXT"}"#,
            &VECTOR.replace("AES-256-GCM", "AES-128-GCM"),
            &VECTOR.replace("AAECAwQFBgcICQoL", "AAECAwQFBgcICQo="),
            &VECTOR.replace("AAECAwQFBgcICQoL", "AAEC"),
            &VECTOR.replace("hA==", ""),
            &VECTOR.replace(r#""Tag""#, r#""Tog""#),
            &VECTOR.replace("9g==", "9h=="),
            &VECTOR.replace(r#""Iv""#, r#""Ciphertext":"AAAA","Iv""#),
            &VECTOR.replace(r#"{"Alg""#, r#"{"Alg":"PLAINTEXT","Alg""#),
            &BARE_USER.replace(r#"{"Role""#, r#"{"role":"System","Role""#),
            &BARE_USER.replace(r#""hello""#, "null"),
            &BARE_USER.replace(r#""hello""#, "7"),
            &BARE_USER.replace(r#""hello""#, r#""\ud800""#),
            &BARE_USER.replace("+00:00", ""),
            &BARE_USER.replace("null", r#"["a"]"#),
            &BARE_USER.replace("null", &deep),
            &deep,
            &format!(r#"{{"Content":{deep}"#),
        ] {
            let reason = read(wrong.as_bytes(), &keys()).err();
            assert!(matches!(reason, Some(Corrupt(_))), "{wrong:.300}");
        }
        assert!(matches!(read(b"{\"Role\":\"\xff\"}", &[]), Err(Corrupt(_))));
    }

    #[test]
    fn a_record_of_this_store_is_told_apart() {
        let own = r#"{"v":1,"alg":"AES-256-GCM","kid":"87caf0db7ccf75207d066b68fbc3d383","iv":"AAECAwQFBgcICQoL","ciphertext":"","tag":"vtnwqUcxQMFh3cEzKaGUlA=="}"#;
        let Err(Corrupt(reason)) = read(own.as_bytes(), &keys()) else { panic!() };
        assert!(reason.contains("Sottovoce"));
    }
}
