//! Words of an answer, whose characters may be cut in two between one part and the next.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use zeroize::{Zeroize, Zeroizing};

/// A text of a server's JSON, as it stands there: possibly with half a character at an end, in UTF-8 or as one half of a
/// surrogate pair. A list of parts is read as the texts in it.
#[derive(Default)]
pub(super) struct Words(Zeroizing<Vec<u8>>);

/// A part of a text that stands as a list.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Part {
    text: Option<Words>,
}

impl Words {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The text. What is half a character becomes U+FFFD.
    pub(super) fn text(&self) -> String {
        let mut joiner = Joiner::default();
        let mut text = joiner.join(self);
        text += &joiner.rest();
        text
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Vec<u8>, A::Error> {
                let mut all = Vec::new();
                while let Some(part) = parts.next_element::<Part>()? {
                    all.extend_from_slice(&part.text.unwrap_or_default().0);
                }
                Ok(all)
            }
        }
        // serde_json reads the bytes of a JSON text as they stand, and half a surrogate pair as three bytes.
        Ok(Self(deserializer.deserialize_bytes(Texts)?.into()))
    }
}

/// Joins the halves of characters that were cut in two between two parts of an answer.
#[derive(Default)]
pub(super) struct Joiner {
    /// Half a character: at most three bytes.
    half: Vec<u8>,
}

impl Joiner {
    /// The text so far, without the half of a character at its end. Half a character elsewhere becomes U+FFFD.
    pub(super) fn join(&mut self, words: &Words) -> String {
        let joined;
        let mut bytes = match self.half.is_empty() {
            true => &words.0[..],
            false if words.0.is_empty() => return String::new(),
            false => {
                joined = Zeroizing::new([&self.half[..], &words.0].concat());
                self.half.clear();
                &joined[..]
            }
        };
        let mut text = String::with_capacity(bytes.len());
        while let Err(error) = str::from_utf8(bytes) {
            let (whole, rest) = bytes.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(whole).unwrap_or_default());
            bytes = match (surrogates(rest), error.error_len()) {
                (Half::Joined(whole, rest), _) => {
                    text.push(whole);
                    rest
                }
                (Half::Open, _) | (Half::None, None) => {
                    self.half = rest.to_vec();
                    return text;
                }
                (Half::Lone(rest), _) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest
                }
                (Half::None, Some(wrong)) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest.get(wrong..).unwrap_or_default()
                }
            };
        }
        text.push_str(str::from_utf8(bytes).unwrap_or_default());
        text
    }

    /// What stands for the half of a character at the end of an answer.
    pub(super) fn rest(&mut self) -> String {
        let is_open = !self.half.is_empty();
        self.half.zeroize();
        if is_open { char::REPLACEMENT_CHARACTER.to_string() } else { String::new() }
    }
}

/// The half of a surrogate pair at the beginning of bytes.
enum Half<'a> {
    None,
    /// With its other half; and the bytes after both.
    Joined(char, &'a [u8]),
    /// The first half, at the end of the bytes.
    Open,
    /// Without its other half; and the bytes after it.
    Lone(&'a [u8]),
}

fn surrogates(bytes: &[u8]) -> Half<'_> {
    let Some((first, rest)) = unit(bytes) else { return Half::None };
    if first >= 0xDC00 {
        return Half::Lone(rest);
    }
    match (unit(rest), rest) {
        (Some((second @ 0xDC00.., after)), _) => {
            let joined = char::decode_utf16([first, second]).next();
            match joined.and_then(Result::ok) {
                Some(whole) => Half::Joined(whole, after),
                None => Half::Lone(rest),
            }
        }
        (None, []) => Half::Open,
        _ => Half::Lone(rest),
    }
}

/// One half of a surrogate pair, and the bytes after it.
fn unit(bytes: &[u8]) -> Option<(u16, &[u8])> {
    match bytes {
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, rest @ ..] => {
            let unit = 0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F);
            Some((unit, rest))
        }
        _ => None,
    }
}
