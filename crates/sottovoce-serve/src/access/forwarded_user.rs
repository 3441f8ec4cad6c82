//! The person for whom a client with many people, such as Open WebUI, sends a request.

use http::HeaderMap;
use http::header::HeaderName;

/// The header that Open WebUI sends with `ENABLE_FORWARD_USER_INFO_HEADERS`.
const USER: HeaderName = HeaderName::from_static("x-openwebui-user-id");

/// The most characters of a person's id.
const LONGEST: usize = 128;

/// The person's id. `None` without the header, with two of them, and if it is not an id: 1 to 128 letters, digits and
/// `-`, `_`, `.`, `@`, `+` of ASCII, of which the first is a letter or a digit. Nothing is decoded, so that each person has
/// exactly one id.
pub(super) fn read(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(USER).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let id = value.to_str().ok().filter(|id| id.len() <= LONGEST)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
    let begins = id.starts_with(|first: char| first.is_ascii_alphanumeric());
    (begins && id.chars().all(is_plain)).then_some(id)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(values: &[&[u8]]) -> HeaderMap {
        let value = |value: &&[u8]| (USER, HeaderValue::from_bytes(value).unwrap());
        HeaderMap::from_iter(values.iter().map(value))
    }

    #[test]
    fn only_one_plain_id_names_a_person() {
        for id in ["8f14e45f-ceea-467f-a9ba-6f2d41d2ae6c", "ann", "Ann.B_c@example.org", "7"] {
            assert_eq!(read(&with(&[id.as_bytes()])), Some(id));
        }
        let long = "a".repeat(LONGEST + 1);
        for wrong in [
            &b""[..],
            b"ann,ben",
            b"ann ",
            b" ann",
            b"a%6en",
            b"../ben",
            b"..",
            b"a/b",
            b"a\tb",
            b"*",
            b"-",
            "\u{e4}nn".as_bytes(),
            b"\xff",
            long.as_bytes(),
        ] {
            assert_eq!(read(&with(&[wrong])), None, "{wrong:?}");
        }
        assert_eq!(read(&with(&[])), None);
        assert_eq!(read(&with(&[b"ann", b"ben"])), None);
        assert_eq!(read(&with(&[b"ann", b"ann"])), None);
    }
}
