//! What may be shown of the reasons that a server gives: nothing of what was said.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

/// The most characters of a reason.
const LONGEST: usize = 200;
/// Words of fewer characters say nothing by themselves.
const TELLING: usize = 4;
const HIDDEN: char = '…';

/// The text of `{"error": …}`.
pub(super) fn complaint(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Complaint {
        error: String,
    }
    serde_json::from_slice::<Complaint>(answer).ok().map(|complaint| complaint.error)
}

/// The model that a request names.
pub(super) fn model(request: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Asked {
        model: String,
    }
    serde_json::from_slice::<Asked>(request).map(|asked| asked.model).unwrap_or_default()
}

/// Whether a reason says that the prompt does not fit.
pub(super) fn speaks_of_length(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["context length", "input length", "longer than", "exceeds", "too long"]
        .iter()
        .any(|sign| reason.contains(sign))
}

/// One printable line of at most 200 characters, without the words of the request and without what stands in quotes
/// or braces, which may be words of the answer.
pub(super) fn shown(reason: &str, request: &[u8]) -> String {
    if reason.trim().is_empty() {
        return "no reason given".to_owned();
    }
    let Some(said) = said(request) else {
        return "the reason is not shown".to_owned();
    };
    let mut line = String::new();
    let mut length = 0;
    for piece in pieces(&without_quotations(reason, &model(request))) {
        let words = piece.starts_with(char::is_alphanumeric);
        let kept = if words && said.contains(&piece.to_lowercase()) {
            HIDDEN.to_string()
        } else if words {
            piece.to_owned()
        } else {
            printable(piece)
        };
        length += kept.chars().count();
        if length >= LONGEST {
            line.push(HIDDEN);
            break;
        }
        line.push_str(&kept);
    }
    line.trim().to_owned()
}

/// The telling words of a request, in lower case; `None` for what is no request.
fn said(request: &[u8]) -> Option<HashSet<String>> {
    let mut said = HashSet::new();
    if request.is_empty() {
        return Some(said);
    }
    let Value::Object(fields) = serde_json::from_slice(request).ok()? else { return None };
    for name in ["messages", "prompt", "system", "input"] {
        if let Some(value) = fields.get(name) {
            collect(value, &mut said);
        }
    }
    Some(said)
}

fn collect(value: &Value, said: &mut HashSet<String>) {
    match value {
        Value::String(text) => note(text, said),
        Value::Number(number) => note(&number.to_string(), said),
        Value::Array(items) => items.iter().for_each(|item| collect(item, said)),
        Value::Object(fields) => {
            // Roles are words of the protocol, and reasons need them.
            for (_, value) in fields.iter().filter(|(name, _)| *name != "role") {
                collect(value, said);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn note(text: &str, said: &mut HashSet<String>) {
    let words = pieces(text).filter(|piece| piece.chars().count() >= TELLING);
    said.extend(words.map(str::to_lowercase));
}

/// Words and what is between them, by turns.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.chars().next()?.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Replaces what is quoted, other than the model's name. Where quotations may be nested, the longest is taken.
fn without_quotations(text: &str, model: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.chars().next() {
        let after = rest.get(open.len_utf8()..).unwrap_or_default();
        kept.push(open);
        rest = after;
        let Some(close) = closing(open) else { continue };
        if within_a_word(&kept) {
            continue;
        }
        let named = after.strip_prefix(model).filter(|_| !model.is_empty());
        if let Some(behind) = named.and_then(|behind| behind.strip_prefix(close)) {
            kept.push_str(model);
            kept.push(close);
            rest = behind;
            continue;
        }
        kept.push(HIDDEN);
        rest = after.rsplit_once(close).map_or("", |(_, behind)| {
            kept.push(close);
            behind
        });
    }
    kept
}

/// Whether a text ends in an apostrophe rather than an opening quotation mark.
fn within_a_word(text: &str) -> bool {
    text.strip_suffix('\'').is_some_and(|before| before.ends_with(char::is_alphanumeric))
}

fn closing(open: char) -> Option<char> {
    Some(match open {
        '"' | '\'' | '`' => open,
        '{' => '}',
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        _ => return None,
    })
}

/// What is between words, without anything that steers a terminal or turns the direction of writing.
fn printable(between: &str) -> String {
    let mut line = String::new();
    for c in between.chars() {
        match c {
            HIDDEN | '!'..='~' => line.push(c),
            _ if line.ends_with(' ') => {}
            _ => line.push(' '),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn request(text: &str) -> Vec<u8> {
        let messages = json!([{ "role": "user", "content": text }]);
        json!({ "model": "m:1b", "messages": messages }).to_string().into_bytes()
    }

    #[test]
    fn a_harmless_reason_is_shown_as_it_is() {
        let shown = shown("registry.ollama.ai/m does not support tools", &request("Wie geht's?"));
        assert_eq!(shown, "registry.ollama.ai/m does not support tools");
    }

    #[test]
    fn the_models_name_is_shown_although_it_is_quoted() {
        let shown = shown("\"m:1b\" does not support \"thinking\"", &request("Hello"));
        assert_eq!(shown, "\"m:1b\" does not support \"…\"");
    }

    #[test]
    fn words_of_every_part_of_a_request_are_hidden() {
        let body = json!({
            "model": "m", "system": "Quiet house", "prompt": "Secretly", "input": ["Embedded"],
            "messages": [{ "role": "user", "content": "Geheimnis", "tool_calls": [
                { "function": { "name": "dial", "arguments": { "number": "0815", "pin": 4711 } } }
            ] }],
        });
        let reason = "user: quiet HOUSE, secretly geheimnis embedded dial 0815 4711";
        let shown = shown(reason, body.to_string().as_bytes());
        assert_eq!(shown, "user: … …, … … … … … …");
    }

    #[test]
    fn what_the_model_said_is_hidden_with_its_quotation() {
        let reason = r#"error parsing tool call: raw='{"city": "Ulm"}', err=invalid character"#;
        assert_eq!(
            shown(reason, &request("x")),
            "error parsing tool call: raw='…', err=invalid character"
        );
        assert_eq!(shown("bad call {\"city\": \"Ulm", &request("x")), "bad call {…");
    }

    #[test]
    fn a_reason_for_a_request_that_cannot_be_read_is_not_shown() {
        assert_eq!(shown("geheim", b"geheim"), "the reason is not shown");
    }

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(shown("a\u{1b}[31m\r\nb\u{202e}c", &request("x")), "a [31m b c");
    }

    proptest! {
        #[test]
        fn no_telling_word_of_the_request_is_ever_shown(
            said in prop::collection::vec("[a-cA-Cäß1]{1,6}", 0..20),
            around in prop::collection::vec("[a-c \"'{}\n\u{202e}é]{0,8}", 0..20),
            repeat in 0usize..5,
        ) {
            let mut reason = String::new();
            for at in 0..said.len().max(around.len()) {
                reason.push_str(around.get(at).map_or(" ", String::as_str));
                reason.push_str(said.get(at).map_or(" ", String::as_str));
            }
            let reason = reason.repeat(repeat);
            let shown = shown(&reason, &request(&said.join(" ")));
            prop_assert!(shown.chars().count() <= 200);
            prop_assert!(!shown.contains(char::is_control));
            let telling: Vec<String> =
                said.iter().filter(|w| w.chars().count() >= 4).map(|w| w.to_lowercase()).collect();
            for word in shown.split(|c: char| !c.is_alphanumeric()) {
                prop_assert!(!telling.contains(&word.to_lowercase()), "{word} in {shown}");
            }
        }
    }
}
