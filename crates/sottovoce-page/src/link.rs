//! Addresses of the pages.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sottovoce::Scope;

/// What stays as it is in a path. The `%` of a scope's own text is encoded, so that it is there again once decoded.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The address of a view of one conversation, such as `/timeline/named/kitchen`.
pub(crate) fn of(view: &str, scope: &Scope) -> String {
    let scope = scope.to_string();
    format!("/{view}/{}", utf8_percent_encode(&scope, PATH))
}

/// [`of`] with a query.
pub(crate) fn with(view: &str, scope: &Scope, query: &[(&str, &str)]) -> String {
    query_of(&of(view, scope), query)
}

pub(crate) fn query_of(path: &str, query: &[(&str, &str)]) -> String {
    let parts = query.iter().filter(|(_, value)| !value.is_empty());
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)))
        .collect();
    if parts.is_empty() { path.to_owned() } else { format!("{path}?{}", parts.join("&")) }
}

/// The message with this number in its place.
pub(crate) fn message(scope: &Scope, seq: u64) -> String {
    let seq = seq.to_string();
    format!("{}#m{seq}", with("timeline", scope, &[("at", &seq)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_of_any_name_stays_one_path_and_is_the_same_scope_once_decoded() {
        for id in ["kitchen", "a/b", "../../etc", "50%", "\u{202e}x", "?x#y&z=\"<"] {
            let scope = Scope::Named { id: id.to_owned() };
            let path = of("timeline", &scope);
            assert!(
                path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#&\"<>".contains(&byte))
            );
            let decoded =
                percent_encoding::percent_decode_str(path.strip_prefix("/timeline/").unwrap());
            assert_eq!(decoded.decode_utf8().unwrap().parse::<Scope>().unwrap(), scope);
        }
    }
}
