//! What was said, as text: cut to a length, with references to artifacts as links.

use maud::{Markup, html};
use sottovoce::Scope;
use sottovoce::store::artifact_references;

use crate::link;

const SCHEME: &str = "artifact://";

/// The beginning of a text, of at most so many bytes as markup, cut between two characters. Tells whether anything was cut.
pub(crate) fn cut(text: &str, most: usize) -> (&str, bool) {
    let mut length = 0;
    for (at, c) in text.char_indices() {
        length += match c {
            '&' | '"' => 6,
            '<' | '>' => 4,
            c => c.len_utf8(),
        };
        if length > most {
            return (text.get(..at).unwrap_or_default(), true);
        }
    }
    (text, false)
}

/// A text with its references to artifacts as links.
pub(crate) fn words(scope: &Scope, text: &str) -> Markup {
    let mut rest = text;
    html! {
        @for id in artifact_references(text) {
            @let reference = format!("{SCHEME}{id}");
            @if let Some((before, after)) = rest.split_once(reference.as_str()) {
                (before)
                a href=(link::with("artifact", scope, &[("id", id)])) { (reference) }
                ({ rest = after; "" })
            }
        }
        (rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_never_become_markup_and_a_cut_is_between_characters() {
        let shown = words(&Scope::Default, "<script>\"&'</script>").into_string();
        assert!(!shown.contains('<') || !shown.contains("<script"), "{shown}");
        assert_eq!(cut("añb", 2), ("a", true));
        assert_eq!(cut("añb", 4), ("añb", false));
        assert_eq!(cut("&&&", 13), ("&&", true));
        assert_eq!(cut("👩‍👩‍👧", 3), ("", true));
    }
}
