//! Halves of characters in JSON.

/// Replaces each half of a surrogate pair that stands alone by U+FFFD, as Go does. Some clients cut a character in two, and
/// no text can hold a half.
pub fn replace_lone_surrogates(body: &mut [u8]) {
    let unit = |body: &[u8], at: usize| -> Option<u16> {
        let digits = body.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(found) = body.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'\\')) {
        at += found;
        at += match (unit(body, at), unit(body, at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                if let Some(digits) = body.get_mut(at + 2..at + 6) {
                    digits.copy_from_slice(b"fffd");
                }
                6
            }
            _ => 2,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_becomes_the_sign_for_one_that_is_missing() {
        for (body, whole) in [
            (r#""Rex \ud83d""#, r#""Rex \ufffd""#),
            (r#""\uDF27\ud83c x\ud83d\ude00""#, r#""\ufffd\ufffd x\ud83d\ude00""#),
            (r#""\\ud83d \n\u00e9\ud83d\ud83d\ude00""#, r#""\\ud83d \n\u00e9\ufffd\ud83d\ude00""#),
            (r#""\ud83"#, r#""\ud83"#),
            ("\\", "\\"),
        ] {
            let mut bytes = body.as_bytes().to_vec();
            replace_lone_surrogates(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), whole);
        }
    }
}
