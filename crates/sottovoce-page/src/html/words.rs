//! What was said, as text: cut to a length, with references to artifacts as links.

use std::ops::Range;

use maud::{Markup, html};
use sottovoce::Scope;
use sottovoce::store::artifact_references;

use crate::english as en;
use crate::html::format::size;
use crate::link;

const SCHEME: &str = "artifact://";
/// The most references of one text that become links.
const LINKED: usize = 12;

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

/// The beginning of a text in a line of its own kind, and how much more there is.
pub(crate) fn brief(text: &str, most: usize) -> Markup {
    let (shown, is_cut) = cut(text, most);
    html! {
        (shown)
        @if is_cut { "… " span.left { (en::more(&size((text.len() - shown.len()) as u64))) } }
    }
}

/// The beginning of a text, and if there is more, how much, with a link to all of it.
pub(crate) fn beginning(scope: &Scope, text: &str, most: usize, whole: Option<&str>) -> Markup {
    let (shown, is_cut) = cut(text, most);
    let more = en::more(&size((text.len() - shown.len()) as u64));
    html! {
        div.words dir="auto" { (words(scope, shown)) @if is_cut { "…" } }
        @if is_cut {
            p.more {
                @match whole {
                    Some(whole) => a href=(whole) { (en::ALL_OF_IT) " (" (more) ")" },
                    None => (more),
                }
            }
        }
    }
}

/// A text with marks on what was looked for.
pub(crate) fn marked(text: &str, marks: &[Range<usize>]) -> Markup {
    let mut from = 0;
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    html! {
        @for place in marks {
            (part(from..place.start)) mark { (part(place.clone())) }
            ({ from = place.end; "" })
        }
        (part(from..text.len()))
    }
}

/// A text with its references to artifacts as links.
pub(crate) fn words(scope: &Scope, text: &str) -> Markup {
    let mut rest = text;
    html! {
        @for id in artifact_references(text).take(LINKED) {
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

    #[test]
    fn what_was_looked_for_is_marked_and_nothing_else_becomes_markup() {
        let shown = marked("<b>añb</b> añb", &[3..7, 12..16]).into_string();
        assert_eq!(shown, "&lt;b&gt;<mark>añb</mark>&lt;/b&gt; <mark>añb</mark>");
    }

    #[test]
    fn a_text_that_is_cut_says_how_much_is_left_out_and_where_all_of_it_is() {
        let text = "a".repeat(3000);
        let shown = beginning(&Scope::Default, &text, 952, Some("/whole")).into_string();
        assert!(shown.contains("href=\"/whole\"") && shown.contains("2.0 KiB more"), "{shown}");
        let whole = beginning(&Scope::Default, "short", 952, Some("/whole")).into_string();
        assert!(!whole.contains("more"), "{whole}");
    }
}
