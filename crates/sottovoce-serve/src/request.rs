//! Requests for an answer, read without changing a byte of them.

mod aside;
mod chat;
mod generate;
mod json;
mod line;
mod responses;

use std::ops::Range;

use sottovoce::ChatRole;

pub(crate) use json::{Object, escaped, tail_start};
pub(crate) use line::{ChatRequest, Line, System, Unread};

/// The form of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Ollama's `/api/chat`.
    OllamaChat,
    /// Ollama's `/api/generate`.
    OllamaGenerate,
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
}

impl Form {
    /// Whether errors have OpenAI's form.
    pub(crate) fn is_openai(self) -> bool {
        matches!(self, Self::OpenAiChat | Self::OpenAiResponses)
    }
}

/// The fields of a request that this server reads, in any of the forms.
const KNOWN: [&str; 20] = [
    "model",
    "name",
    "messages",
    "prompt",
    "system",
    "suffix",
    "raw",
    "input",
    "instructions",
    "previous_response_id",
    "format",
    "response_format",
    "text",
    "options",
    "tools",
    "user",
    "conversation",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
];
/// Those of them in its options.
const OPTIONS: [&str; 2] = ["num_ctx", "num_predict"];

impl ChatRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Unread::Refused`] for one that is not exactly a JSON object of the form, in which every model server finds the
    /// same words. [`Unread::Aside`] for one that belongs to no conversation: it has no words of a user, or is a
    /// [probe or a task](aside).
    pub(crate) fn read(form: Form, body: &[u8]) -> Result<Self, Unread> {
        let (body, fields) = fields(body)?;
        let mut request = match form {
            Form::OllamaChat | Form::OpenAiChat => chat::read(body, &fields)?,
            Form::OllamaGenerate => generate::read(body, &fields)?,
            Form::OpenAiResponses => responses::read(body, &fields)?,
        };
        for line in request.lines.iter_mut().filter(|line| line.speaker == ChatRole::User) {
            if let Some(words) = aside::words_beside_documents(&line.text) {
                line.text = words;
            }
        }
        request.aside = aside::doubt(&request, &fields);
        match aside::bounded(&fields).or_else(|| aside::unsaid(&request)) {
            Some(reason) => Err(Unread::Aside(reason)),
            None => Ok(request),
        }
    }
}

fn fields(body: &[u8]) -> Result<(&str, Object<'_>), String> {
    let body = str::from_utf8(body).map_err(|_| "the request is not UTF-8")?;
    let fields = Object::strict(body, &KNOWN)?;
    if let Some(options) = fields.raw("options") {
        Object::strict(options, &OPTIONS)?;
    }
    Ok((body, fields))
}

/// The model that a request names. Ollama also takes `name` for it where it shows models.
///
/// # Errors
/// What is wrong with the request, in words for a client.
pub(crate) fn model(body: &[u8]) -> Result<String, String> {
    let (_, fields) = fields(body)?;
    let named = fields.only_text("model")?.filter(|model| !model.is_empty());
    Ok(named.or(fields.only_text("name")?).unwrap_or_default())
}

/// A change to a request's body: these bytes are replaced by a text.
#[derive(Clone)]
pub(crate) struct Splice {
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
}

/// The body with the changes, which do not overlap. Changes at the same place keep their order.
pub(crate) fn spliced(body: &[u8], mut splices: Vec<Splice>) -> Vec<u8> {
    splices.sort_by_key(|splice| splice.at.start);
    let added: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut whole = Vec::with_capacity(body.len() + added);
    let mut from = 0;
    for splice in splices {
        whole.extend_from_slice(body.get(from..splice.at.start).unwrap_or_default());
        whole.extend_from_slice(splice.text.as_bytes());
        from = splice.at.end;
    }
    whole.extend_from_slice(body.get(from..).unwrap_or_default());
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, body: &str) -> Result<ChatRequest, Unread> {
        ChatRequest::read(form, body.as_bytes())
    }

    #[test]
    fn the_words_and_their_places_are_found_in_every_form() {
        let chat = r#"{ "model":"m", "options":{"num_ctx":8192.0}, "messages":[{"role":"system","content":"Be \"brief\"."},
            {"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"caf\u00e9?"}]}],"x":1e400}"#;
        let responses = r#"{"model":"m","instructions":"Be \"brief\".","input":[{"role":"user","content":[{"type":"input_text","text":"caf\u00e9?"}]}]}"#;
        let generate =
            r#"{"model":"m","system":"Be \"brief\".","prompt":"caf\u00e9?","stream":true}"#;
        for (form, body) in [
            (Form::OllamaChat, chat),
            (Form::OpenAiChat, chat),
            (Form::OpenAiResponses, responses),
            (Form::OllamaGenerate, generate),
        ] {
            let request = read(form, body).unwrap();
            assert_eq!(request.model, "m");
            let system = request.system.as_ref().unwrap();
            assert_eq!(system.text, "Be \"brief\".");
            assert_eq!(body.get(system.place.clone()).unwrap(), r#""Be \"brief\".""#);
            assert_eq!(request.utterance(), "café?");
            let place = request.lines.last().unwrap().place.clone().unwrap();
            assert_eq!(body.get(place).unwrap(), r#""caf\u00e9?""#);
            assert_eq!(request.window, (body == chat).then_some(8192));
        }
    }

    #[test]
    fn calls_and_their_results_are_read_in_every_form() {
        let ollama = r#"{"messages":[{"role":"user","content":"Light on."},
            {"role":"assistant","content":"","tool_calls":[{"function":{"name":"light","arguments":{"on":true}}}]},
            {"role":"tool","content":"done","tool_name":"light"}]}"#;
        let openai = r#"{"messages":[{"role":"user","content":"Light on."},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"light","arguments":"{\"on\":true}"}}]},
            {"role":"tool","tool_call_id":"c1","content":"done"}]}"#;
        let responses = r#"{"input":[{"role":"user","content":"Light on."},
            {"type":"function_call","call_id":"c1","name":"light","arguments":"{\"on\":true}"},
            {"type":"function_call_output","call_id":"c1","output":"done"}]}"#;
        for (form, body) in [
            (Form::OllamaChat, ollama),
            (Form::OpenAiChat, openai),
            (Form::OpenAiResponses, responses),
        ] {
            let request = read(form, body).unwrap();
            let [said, called, result] = &request.lines[..] else { panic!("{form:?}") };
            assert_eq!((said.speaker, request.newest()), (ChatRole::User, Some(0)));
            assert_eq!(called.speaker, ChatRole::Assistant);
            assert_eq!(called.calls[0].name, "light");
            assert_eq!(called.calls[0].arguments, serde_json::json!({ "on": true }));
            assert_eq!((result.speaker, result.text.as_str()), (ChatRole::Tool, "done"));
        }
    }

    #[test]
    fn tasks_and_probes_belong_to_no_conversation() {
        let says =
            |more: &str| format!(r#"{{"messages":[{{"role":"user","content":"Hi."}}]{more}}}"#);
        for body in [
            says(r#","format":"json""#),
            says(r#","format":{"type":"object"}"#),
            says(r#","response_format":{"type":"json_schema"}"#),
            says(r#","max_tokens":3"#),
            says(r#","options":{"num_predict":1.0}"#),
            says(r#","tools":[{"type":"function","function":{"name":"test_function"}}]"#),
            r#"{"messages":[]}"#.into(),
            r#"{"messages":[{"role":"system","content":"x"}]}"#.into(),
            r#"{"messages":[{"role":"user","content":"  "}]}"#.into(),
            r#"{"messages":[{"role":"user","content":"What is the capital of France?"}]}"#.into(),
            says("").replace("Hi.", "### Task:\\nGenerate a title\\n### Output:\\nJSON"),
            says("").replace("Hi.", "Your task is to reflect the speaker's likely facial expression through"),
            says("").replace("Hi.", "Provide a concise, 5-word-or-less title for the conversation, using"),
            r#"{"messages":[{"role":"system","content":"Available Tools: []"},{"role":"user","content":"Query: Hi."}]}"#.into(),
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#
                .into(),
            "{}".into(),
        ] {
            for form in [Form::OllamaChat, Form::OpenAiChat] {
                assert!(matches!(read(form, &body), Err(Unread::Aside(_))), "{body}");
            }
        }
        // A person may say so, and documents may stand in the system prompt.
        for words in ["### Task: buy milk", "Explain ### Task: x <context> mine </context>."] {
            let said = says("").replace("Hi.", words);
            assert_eq!(read(Form::OllamaChat, &said).unwrap().utterance(), words);
        }
        for system in ["### Task:\\nx\\n### Guidelines:\\ny", "Available Tools: a lamp"] {
            let body = format!(
                r#"{{"messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"Hi."}}]}}"#
            );
            assert_eq!(read(Form::OllamaChat, &body).unwrap().utterance(), "Hi.");
        }
        for more in ["", r#","format":"""#, r#","format":null,"response_format":{"type":"text"}"#] {
            assert!(read(Form::OllamaChat, &says(more)).is_ok(), "{more}");
        }
        for more in [r#","raw":true"#, r#","suffix":"}""#, r#","format":"json""#] {
            let body = format!(r#"{{"prompt":"Hi."{more}}}"#);
            assert!(matches!(read(Form::OllamaGenerate, &body), Err(Unread::Aside(_))), "{more}");
        }
        let formatted = r#"{"input":"Hi.","text":{"format":{"type":"json_object"}}}"#;
        assert!(matches!(read(Form::OpenAiResponses, formatted), Err(Unread::Aside(_))));
    }

    #[test]
    fn pictures_without_words_are_told_of_and_stand_nowhere() {
        let body = r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"},
            {"type":"input_image","image_url":"y"}]}]}"#;
        let request = read(Form::OpenAiResponses, body).unwrap();
        assert_eq!((request.utterance(), &request.lines[0].place), ("[2 images]", &None));
        let body = r#"{"prompt":"Who is it?","images":["x"]}"#;
        assert_eq!(read(Form::OllamaGenerate, body).unwrap().utterance(), "Who is it?");
    }

    #[test]
    fn only_a_first_request_for_json_or_a_title_is_doubted() {
        let doubt = |system: &str, more: &str, rest: &str| {
            let system = serde_json::json!(system);
            let body = format!(
                r#"{{"messages":[{{"role":"system","content":{system}}},{more}{{"role":"user","content":"Hi."}}]{rest}}}"#
            );
            read(Form::OllamaChat, &body).unwrap().aside.is_some()
        };
        let json = "You sort mail. Return ONLY a JSON object.";
        let task = "You are a Home Assistant expert and help users with their tasks.";
        let alone = "Respond only with JSON, no other text.";
        for system in [json, task, alone, "Generate a short title for the following chat."] {
            assert!(doubt(system, "", ""), "{system}");
        }
        let tools = r#","tools":[{"type":"function","function":{"name":"light"}}]"#;
        assert!(doubt(task, "", tools) && !doubt(json, "", tools));
        assert!(!doubt(
            json,
            r#"{"role":"user","content":"a"},{"role":"assistant","content":"b"},"#,
            ""
        ));
        for system in [
            "You are a voice assistant. Devices, as JSON: []. Answer in one sentence only.",
            "Answer only what was asked. The title of the house's owner is Dr.",
            "You are a librarian. Give the title of a book when you can.",
            "Answer only in plain sentences, never in JSON.",
            "Answer only from this JSON of devices: [].",
            "Address the user by title in every reply of this conversation.",
        ] {
            assert!(!doubt(system, "", ""), "{system}");
        }
        let alone = r#"{"prompt":"Give this conversation a title."}"#;
        assert!(read(Form::OllamaGenerate, alone).unwrap().aside.is_some());
    }

    #[test]
    fn a_persons_words_are_taken_out_of_the_template_for_documents() {
        let template = "### Task:\nRespond to the query using the context.\n\n### Output:\ny\n\n\
                        <context>\n<source id=\"1\">A </context> of leeks</source>\n</context>\n";
        for content in [
            format!("{template}\nWhat goes with leeks?"),
            format!("What goes with leeks?\n{template}"),
            format!("{template}<user_query>\nWhat goes with leeks?\n</user_query>\n"),
            format!("{template}<user_query>x</user_query>\n\nWhat goes with leeks?"),
        ] {
            let content = serde_json::json!(content).to_string();
            let body = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
            let request = read(Form::OllamaChat, &body).unwrap();
            assert_eq!(request.utterance(), "What goes with leeks?", "{content}");
            assert_eq!(body.get(request.lines[0].place.clone().unwrap()).unwrap(), content);
        }
    }

    #[test]
    fn what_servers_read_differently_is_refused_in_every_form() {
        let deep = format!(r#"{{"messages":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let chat = [Form::OllamaChat, Form::OpenAiChat];
        for (forms, body) in [
            (&chat[..], ""),
            (&chat, "{"),
            (&chat, "[1]"),
            (&chat, &deep),
            (&chat, r#"{"messages":"hello"}"#),
            (&chat, r#"{"messages":[null]}"#),
            (&chat, r#"{"messages":[{"content":"Hi."}]}"#),
            (&chat, r#"{"messages":[{"role":"User","content":"Hi."}]}"#),
            (&chat, r#"{"messages":[{"role":" user","content":"Hi."}]}"#),
            (&chat, r#"{"messages":[{"Role":"user","content":"Hi."}]}"#),
            (&chat, r#"{"messages":[{"role":"user","Content":"Hi."}]}"#),
            (&chat, r#"{"messages":[{"role":"user","content":"Hi.","content":"Ho."}]}"#),
            (&chat, r#"{"messages":[{"role":"user","content":{"text":"Hi."}}]}"#),
            (&chat, r#"{"messages":[{"role":"user","content":[{"Text":"Hi."}]}]}"#),
            (&chat, r#"{"messages":[{"role":"user","content":["Hi."]}]}"#),
            (&chat, r#"{"Messages":[{"role":"user","content":"Hi."}]}"#),
            (&chat, r#"{"model":7,"messages":[{"role":"user","content":"Hi."}]}"#),
            (&chat, r#"{"messages":[{"role":"user","content":"Hi."}],"format":"json"} x"#),
            (&[Form::OllamaGenerate], r#"{"Prompt":"Hi."}"#),
            (&[Form::OllamaGenerate], r#"{"prompt":["Hi."]}"#),
            (&[Form::OllamaGenerate], r#"{"prompt":"Hi.","options":{"NUM_CTX":1}}"#),
            (&[Form::OpenAiResponses], r#"{"Input":"Hi."}"#),
            (&[Form::OpenAiResponses], r#"{"input":{"content":"Hi."}}"#),
            (&[Form::OpenAiResponses], r#"{"input":[{"role":"USER","content":"Hi."}]}"#),
            (&[Form::OpenAiResponses], r#"{"input":[{"type":7,"role":"user","content":"Hi."}]}"#),
        ] {
            for form in forms {
                let refused = read(*form, body).unwrap_err();
                let Unread::Refused(reason) = refused else { panic!("{body}") };
                assert!(!reason.contains("Hi."), "{reason}");
            }
        }
        let latin = b"{\"messages\":[{\"role\":\"user\",\"content\":\"caf\xe9\"}]}";
        assert!(matches!(ChatRequest::read(Form::OllamaChat, latin), Err(Unread::Refused(_))));
        // Fields that this server does not read are the model server's, and functions name theirs as they like.
        let free = r#"{"Stream":true,"x":1,"x":2,"messages":[{"role":"user","content":"Hi.","X":1}],
            "tools":[{"function":{"name":"f","parameters":{"properties":{"Content":{},"Model":{}}}}}]}"#;
        assert!(read(Form::OllamaChat, free).is_ok());
    }
}
