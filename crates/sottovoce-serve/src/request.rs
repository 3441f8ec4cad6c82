//! Requests for an answer, read without changing a byte of them.

mod aside;
mod chat;
mod generate;
mod json;
mod line;
mod responses;

use std::ops::Range;

pub(crate) use json::{Object, escaped, tail_start};
pub(crate) use line::{ChatRequest, Line, Speaker, System};

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

impl ChatRequest {
    /// Reads a request. `None` for one that belongs to no conversation: it is not understood, has no words of a user, or
    /// is a [probe or a task](aside).
    pub(crate) fn read(form: Form, body: &[u8]) -> Option<Self> {
        let body = str::from_utf8(body).ok()?;
        let fields = Object::parse(body)?;
        if aside::is_bounded(&fields) {
            return None;
        }
        let request = match form {
            Form::OllamaChat | Form::OpenAiChat => chat::read(body, &fields)?,
            Form::OllamaGenerate => generate::read(body, &fields)?,
            Form::OpenAiResponses => responses::read(body, &fields)?,
        };
        let newest = request.lines.last()?;
        let user = request.newest().and_then(|at| request.lines.get(at))?;
        let is_turn = newest.speaker != Speaker::Assistant && !user.text.trim().is_empty();
        (is_turn && !aside::is_task(&request)).then_some(request)
    }
}

/// The model that a request names.
pub(crate) fn model(body: &[u8]) -> String {
    let fields = str::from_utf8(body).ok().and_then(Object::parse);
    fields.and_then(|fields| fields.text("model")).unwrap_or_default()
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

    fn read(form: Form, body: &str) -> Option<ChatRequest> {
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
            assert_eq!((said.speaker, request.newest()), (Speaker::User, Some(0)));
            assert_eq!(called.speaker, Speaker::Assistant);
            assert_eq!(called.calls[0].name, "light");
            assert_eq!(called.calls[0].arguments, serde_json::json!({ "on": true }));
            assert_eq!((result.speaker, result.text.as_str()), (Speaker::Tool, "done"));
        }
    }

    #[test]
    fn tasks_probes_and_nonsense_belong_to_no_conversation() {
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
            says("").replace("Hi.", "### Task:\\nGenerate a title"),
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#
                .into(),
            r#"{"messages":"hello"}"#.into(),
            "[1]".into(),
            "{".into(),
            String::new(),
        ] {
            for form in [Form::OllamaChat, Form::OpenAiChat] {
                assert!(read(form, &body).is_none(), "{body}");
            }
        }
        for more in ["", r#","format":"""#, r#","format":null,"response_format":{"type":"text"}"#] {
            assert!(read(Form::OllamaChat, &says(more)).is_some(), "{more}");
        }
        for more in [r#","raw":true"#, r#","suffix":"}""#, r#","format":"json""#] {
            let body = format!(r#"{{"prompt":"Hi."{more}}}"#);
            assert!(read(Form::OllamaGenerate, &body).is_none(), "{more}");
        }
        assert!(
            read(
                Form::OpenAiResponses,
                r#"{"input":"Hi.","text":{"format":{"type":"json_object"}}}"#
            )
            .is_none()
        );
        let deep = format!(r#"{{"messages":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(Form::OllamaChat, &deep).is_none());
    }
}
