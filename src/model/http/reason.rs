//! Decides which parts of a server's error message may be shown: known phrases and nothing else, because a message
//! may quote the prompt or the answer.

use serde::Deserialize;
use serde_json::Value;

/// Known phrases of Ollama, llama.cpp's server, vLLM, LM Studio, LocalAI and OpenAI. `{n}` stands for a number, with
/// its unit if it is a size; `{model}` for the requested model's name, `{ability}` for one of [`ABILITIES`], and
/// `{any}` for the rest of the text, which is not shown.
const KNOWN: [&str; 74] = [
    // Ollama
    "{model} does not support {ability}",
    "\"{model}\" does not support {ability}",
    "\"{model}\" does not support {ability}. Pull the model again to get the latest version with full {ability} support",
    "model requires more system memory ({n}) than is available ({n})",
    "model requires more gpu memory than is available",
    "unable to load full model on GPU",
    "unable to load model: {any}",
    "error loading model{any}",
    "llama runner process has terminated: exit status {n}",
    "llama runner process has terminated: signal: {any}",
    "llama runner process has terminated{any}",
    "llama runner process no longer running: {n}",
    "llama runner exited, you may not have enough available memory to run this model",
    "timed out waiting for llama runner to start{any}",
    "model failed to load, this may be due to resource limitations or an internal error, check ollama server logs for \
     details",
    "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama \
     server logs for details",
    "an error was encountered while running the model{any}",
    "this model requires MLX support, but the MLX runtime is not available",
    "this server cannot run this remote model",
    "this model only supports one image while more than one image requested",
    "image generation models are not currently supported",
    "raw mode does not support template, system, or context",
    "embedding contains NaN or Inf values",
    "error parsing tool call: {any}",
    "XML syntax error on line {n}: {any}",
    "invalid duration {any}",
    "invalid think value: {any}",
    "think must be a boolean or string {any}",
    "option {any}",
    "template error{any}",
    "model is required",
    "missing request body",
    "request canceled",
    "unauthorized{any}",
    "you are not currently signed in",
    "account unavailable",
    "server busy, please try again.  maximum pending requests exceeded",
    "unexpected EOF",
    "out of memory",
    "CUDA error{any}",
    // llama.cpp
    "Loading model",
    "Invalid API Key",
    "Compute error.",
    "Invalid input batch.",
    "An unknown error occurred",
    "Failed to tokenize prompt",
    "Failed to initialize samplers: {any}",
    "Failed to parse messages: {any}",
    "Failed to parse tools: {any}",
    "Failed to parse tool call arguments as JSON: {any}",
    "Failed to parse input at pos {n}{any}",
    "'messages' is required",
    "'tools' must be an array of objects",
    "tools param requires --jinja flag",
    "Cannot use custom grammar constraints with tools.",
    "Multimodal data provided, but model does not support multimodal requests.",
    "Assistant message must contain either 'content' or 'tool_calls'!",
    "Invalid diff: {any}",
    // vLLM
    "Unauthorized",
    "Internal server error",
    "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
    "max_tokens must be at least {n}, got {any}",
    "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    // LM Studio
    "No models loaded. Please load a model in the developer page or use the {any}",
    "Multiple models are loaded. {any}",
    "Failed to load model \"{model}\". {any}",
    "Model unloaded{any}",
    "The model has crashed without additional information. (Exit code: {n})",
    "Error rendering prompt with jinja template: {any}",
    // OpenAI
    "Incorrect API key provided: {any}",
    "You didn't provide an API key. {any}",
    "You exceeded your current quota, please check your plan and billing details. {any}",
    "Rate limit reached for {any}",
    "Unsupported parameter: 'max_tokens' is not supported with this model. {any}",
];

const ABILITIES: [&str; 8] =
    ["tools", "chat", "generate", "completion", "thinking", "vision", "embedding", "insert"];

/// The longest number in digits, so that no number can carry more than a count.
const DIGITS: usize = 12;

/// The reason in the body of an error: `{"error": "…"}`, `{"error": {"message": "…"}}` or `{"message": "…"}`.
pub(super) fn complaint(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Complaint {
        error: Option<Value>,
        message: Option<Value>,
        detail: Option<Value>,
    }
    let found = serde_json::from_slice::<Complaint>(answer).ok()?;
    [found.error, found.message, found.detail].iter().flatten().find_map(words)
}

/// The message of an error, either a bare string or inside an object.
pub(crate) fn words(error: &Value) -> Option<String> {
    let words = error.as_str().or_else(|| error.get("message")?.as_str());
    words.map(str::to_owned)
}

/// The model that a request names.
pub(super) fn model(request: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Asked {
        model: String,
    }
    serde_json::from_slice::<Asked>(request).map(|asked| asked.model).unwrap_or_default()
}

/// Whether a reason says that the prompt is too long.
pub(super) fn speaks_of_length(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["context length", "context size", "input length", "longer than", "exceeds", "too long"]
        .iter()
        .any(|sign| reason.contains(sign))
}

/// Whether a reason says that the model does not exist.
pub(super) fn speaks_of_absence(reason: &str) -> bool {
    ["not found", "does not exist", "No models loaded"].iter().any(|sign| reason.contains(sign))
}

/// The showable form of a reason.
pub(super) fn shown(reason: &str, model: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() {
        return "no reason given".to_owned();
    }
    let known = KNOWN.iter().find_map(|pattern| filled(pattern, reason, model));
    known.unwrap_or_else(|| {
        format!(
            "a reason of {} bytes, not shown because it may quote the conversation",
            reason.len()
        )
    })
}

/// Matches a text against a pattern. Returns the filled pattern.
fn filled(pattern: &str, text: &str, model: &str) -> Option<String> {
    let (mut rest, mut shown) = (text, String::new());
    for (at, part) in pattern.split(['{', '}']).enumerate() {
        let taken = match (at % 2, part) {
            (0, fixed) => rest.starts_with(fixed).then_some(fixed.len())?,
            (_, "n") => number(rest)?,
            (_, "model") => named(rest, model)?,
            (_, "ability") => ABILITIES.iter().find(|name| rest.starts_with(**name))?.len(),
            _ => {
                shown.push_str(if rest.is_empty() { "" } else { "…" });
                return Some(shown);
            }
        };
        let (taken, after) = rest.split_at_checked(taken)?;
        shown.push_str(taken);
        rest = after;
    }
    rest.is_empty().then_some(shown)
}

/// The length of a number, with the unit of a size after it.
fn number(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    // A point behind the last digit belongs to what follows, which may be a quotation.
    let digits = text.get(..end)?.trim_end_matches('.').len();
    let behind = text.get(digits..)?;
    let units = [" TiB", " GiB", " MiB", " KiB", " B", " TB", " GB", " MB", " KB"];
    let unit = units.iter().find(|unit| behind.starts_with(**unit)).map_or(0, |unit| unit.len());
    (1..=DIGITS).contains(&digits).then_some(digits + unit)
}

/// The length of the model's name, as requested or as Ollama's registry writes it.
fn named(text: &str, model: &str) -> Option<usize> {
    let name = text.strip_prefix("registry.ollama.ai/").unwrap_or(text);
    let name = name.strip_prefix("library/").unwrap_or(name);
    let plain = model.split(':').next().unwrap_or_default();
    let found =
        [model, plain].into_iter().find(|name_| !name_.is_empty() && name.starts_with(name_))?;
    let tag = name.get(found.len()..)?.starts_with(":latest").then_some(":latest".len());
    Some(text.len() - name.len() + found.len() + tag.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn known_reasons_are_shown_with_their_numbers_and_the_models_name() {
        for known in [
            "m:1b does not support tools",
            "registry.ollama.ai/library/m:1b does not support tools",
            "\"m:1b\" does not support thinking",
            "model requires more system memory (5.6 GiB) than is available (812.0 MiB)",
            "llama runner process has terminated: exit status 2",
            "Invalid API Key",
        ] {
            assert_eq!(shown(known, "m:1b"), known);
        }
        assert_eq!(
            shown("\"m:latest\" does not support chat", "m"),
            "\"m:latest\" does not support chat"
        );
    }

    #[test]
    fn what_stands_behind_a_known_beginning_is_not_shown() {
        let reason = r#"error parsing tool call: raw='{"city": "Ulm"}', err=invalid character"#;
        assert_eq!(shown(reason, "m"), "error parsing tool call: …");
        let other = "other does not support tools";
        assert!(shown(other, "m").starts_with("a reason of 28 bytes"));
        assert!(shown("mother does not support tools", "m").starts_with("a reason of"));
        assert_eq!(shown(" ", "m"), "no reason given");
        assert_eq!(
            shown("Failed to parse input at pos 4. x", "m"),
            "Failed to parse input at pos 4…"
        );
    }

    #[test]
    fn errors_of_every_server_are_found() {
        for body in [
            json!({ "error": "Loading model" }),
            json!({ "error": { "message": "Loading model", "type": "unavailable_error", "code": 503 } }),
            json!({ "object": "error", "message": "Loading model", "code": 400 }),
            json!({ "detail": "Loading model" }),
        ] {
            assert_eq!(complaint(body.to_string().as_bytes()).as_deref(), Some("Loading model"));
        }
        assert_eq!(complaint(b"Loading model"), None);
    }

    /// Separates accents from their letters, as some servers write them.
    fn decomposed(text: &str) -> String {
        text.chars()
            .flat_map(|c| match c {
                'é' => vec!['e', '\u{301}'],
                'ä' => vec!['a', '\u{308}'],
                c => vec![c],
            })
            .collect()
    }

    fn escaped(text: &str) -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
    }

    proptest! {
        // No word of the table consists of these letters alone.
        #[test]
        fn nothing_of_a_prompt_is_ever_shown_in_any_script(
            prompt in "([qzxéä]{1,6}[ ,.]?|[ก-ฮ]{1,8}|[一-三]{1,6}|[あ-お]{1,6}|[а-г]{1,6} ?|[😀-😄]){1,12}",
            (from, to) in (0usize..40, 0usize..40),
            frame in prop::sample::select(KNOWN.to_vec()),
            at in 0usize..60,
            form in 0u8..4,
        ) {
            let cut: String = prompt.chars().skip(from.min(to)).take(1 + from.abs_diff(to)).collect();
            let quoted = match form {
                0 => cut.clone(),
                1 => decomposed(&cut),
                2 => escaped(&cut),
                _ => serde_json::to_string(&cut).unwrap(),
            };
            let mut filled_in: Vec<char> = frame
                .replace("{model}", "m").replace("{n}", "4").replace("{ability}", "tools").replace("{any}", &quoted)
                .chars().collect();
            if !frame.contains("{any}") {
                let at = at.min(filled_in.len());
                filled_in.splice(at..at, quoted.chars());
            }
            let reason: String = filled_in.into_iter().collect();
            let shown = shown(&reason, "m");
            for c in cut.chars().chain(decomposed(&cut).chars()).filter(|c| c.is_alphabetic() || !c.is_ascii()) {
                if !"qzxea".contains(c) {
                    prop_assert!(!shown.contains(c), "{c} of {quoted} in {shown}");
                }
            }
            if form == 2 {
                prop_assert!(!shown.contains("\\u"), "{shown}");
            }
            let ours = KNOWN.iter().any(|known| {
                let fixed = known.replace("{model}", "m").replace("{n}", "4").replace("{ability}", "tools");
                shown.trim_end_matches('…') == fixed.replace("{any}", "").trim()
                    || shown.trim_end_matches('…') == fixed.replace("{any}", "")
            });
            prop_assert!(ours || shown.starts_with("a reason of ") || shown == "no reason given", "{shown}");
        }
    }
}
