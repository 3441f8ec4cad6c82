//! Which conversations a device shares

use serde::{Deserialize, Serialize};
use sottovoce::Scope;

/// Which conversations a device shares, by the texts of their scopes, such as `default`, `named/kitchen` or `dm/42`.
/// In a pattern, `*` stands for any characters.
///
/// Without patterns, the default and the named conversations are shared: direct messages and a person's part of a group
/// are not, unless they are named or [`all`](Self::all) is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Whether all conversations are shared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// If there are any, only conversations that match one of them are shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Conversations that match one of them are not shared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

impl Selection {
    /// Whether a conversation is shared.
    pub fn includes(&self, scope: &Scope) -> bool {
        let text = scope.to_string();
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &text));
        let is_asked = match (self.only.is_empty(), scope) {
            (false, _) => any(&self.only),
            (true, Scope::Default | Scope::Named { .. }) => true,
            (true, _) => self.all,
        };
        is_asked && !any(&self.except)
    }
}

/// Whether a text matches a pattern with `*` for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        text.parse().unwrap()
    }

    #[test]
    fn direct_messages_are_shared_only_if_they_are_named() {
        let selection = Selection::default();
        assert!(selection.includes(&Scope::Default) && selection.includes(&scope("named/kitchen")));
        assert!(!selection.includes(&scope("dm/42")));
        assert!(!selection.includes(&scope("guild/1/2/42")));
        let all = Selection { all: true, except: vec!["dm/4*".to_owned()], ..Selection::default() };
        assert!(all.includes(&scope("dm/5")) && !all.includes(&scope("dm/42")));
        let only = Selection { only: vec!["dm/42".to_owned()], ..Selection::default() };
        assert!(only.includes(&scope("dm/42")) && !only.includes(&Scope::Default));
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, expected) in [
            ("*", "default", true),
            ("dm/*", "dm/42", true),
            ("dm/*", "named/dm/1", false),
            ("guild/*/2/*", "guild/1/2/42", true),
            ("guild/*/3/*", "guild/1/2/42", false),
            ("named/a", "named/ab", false),
            ("*a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
