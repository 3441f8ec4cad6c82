//! Strips comments and trailing commas from JSON, as .NET's reader does.

/// Replaces comments and trailing commas by spaces. Keeps line breaks, so that the positions in errors are right.
pub(super) fn without_comments(json: &[u8]) -> Vec<u8> {
    let mut plain = json.to_vec();
    // The last byte outside white space and comments, and the one before a comma.
    let (mut last, mut before_comma) = ((0, b'['), b'[');
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let rest = json.get(at..).unwrap_or_default();
        let length = match byte {
            b'"' => string(rest),
            b'/' => comment(rest),
            _ => 1,
        };
        match byte {
            b'/' if length > 1 => blank(&mut plain, at, length),
            byte if byte.is_ascii_whitespace() => {}
            _ => {
                // A comma must follow a value, as in strict JSON.
                let is_trailing = last.1 == b',' && !b"[{,".contains(&before_comma);
                if matches!(byte, b']' | b'}') && is_trailing {
                    blank(&mut plain, last.0, 1);
                }
                if byte == b',' {
                    before_comma = last.1;
                }
                last = (at, byte);
            }
        }
        at += length;
    }
    plain
}

/// The length of a string literal with its quotation marks.
fn string(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The length of a comment without its line break; 1 if there is no comment, or a block comment without an end.
fn comment(text: &[u8]) -> usize {
    if text.starts_with(b"//") {
        return text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    }
    let inner = text.strip_prefix(b"/*").unwrap_or_default();
    inner.windows(2).position(|some| some == b"*/").map_or(1, |end| end + 4)
}

fn blank(text: &mut [u8], at: usize, length: usize) {
    for byte in text.iter_mut().skip(at).take(length).filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&without_comments(json.as_bytes()))
    }

    #[test]
    fn comments_and_trailing_commas_are_read_as_if_they_were_not_there() {
        for (json, plain) in [
            ("// a\n{\"a\": 1} // b", r#"{"a":1}"#),
            ("{\"a\": /* [,] */ [1, 2, /* , */ ], }", r#"{"a":[1,2]}"#),
            (
                r#"{"a": "// no /* comment */ ,]", "b\"//": "\\",}"#,
                r#"{"a":"// no /* comment */ ,]","b\"//":"\\"}"#,
            ),
            ("[[1,],\n// x\n]", "[[1]]"),
            ("{\"é\": [\"é\",],}", r#"{"é":["é"]}"#),
        ] {
            assert_eq!(read(json).unwrap().to_string(), plain, "{json}");
        }
    }

    #[test]
    fn what_is_wrong_without_them_stays_wrong_where_it_stands() {
        for json in [
            "[,]",
            "{,}",
            "[1,,]",
            "[1,,2]",
            "{\"a\":,}",
            "[1 /* ",
            "/ [1]",
            "[1]/",
            "\"",
            ",",
            "[1],",
        ] {
            assert!(read(json).is_err(), "{json}");
        }
        let error = read("{ // one\n  /* two\n */ \"a\": x }").unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 10));
    }
}
