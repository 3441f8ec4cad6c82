//! Renders prompts for servers with OpenAI's chat completions.

use serde::Serialize;

use super::chat_line::{self, ChatLine};
use super::{ModelOptions, ModelRequest, PromptRenderer};
use crate::prompt::Prompt;

/// Renders the same messages as [`OllamaChatRenderer`](super::OllamaChatRenderer), in the format of
/// `/v1/chat/completions`.
///
/// That format has no context window and no loading time, so these settings are left out. The thinking setting, if it
/// is set, uses the field of llama.cpp's server and vLLM. A streamed answer is asked to report its token counts.
#[derive(Debug, Clone)]
pub struct OpenAiChatRenderer(ModelOptions);

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatLine<'a, Call<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a serde_json::Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

impl OpenAiChatRenderer {
    /// A renderer with these settings.
    pub fn new(options: ModelOptions) -> Self {
        Self(options)
    }
}

impl PromptRenderer for OpenAiChatRenderer {
    fn render(&self, prompt: &Prompt) -> ModelRequest {
        let mut messages = chat_line::lines(prompt, |call| Call {
            id: &call.id,
            r#type: "function",
            function: Function { name: &call.name, arguments: call.arguments.to_string() },
        });
        messages.iter_mut().for_each(|line| line.tool_name = None);
        let body = Body {
            model: &self.0.model,
            messages,
            tools: self.0.tools.iter().chain(&prompt.tools).collect(),
            stream: self.0.stream,
            stream_options: self.0.stream.then_some(StreamOptions { include_usage: true }),
            chat_template_kwargs: self
                .0
                .think
                .map(|enable_thinking| TemplateArguments { enable_thinking }),
            max_tokens: prompt.max_tokens.or(self.0.num_predict),
            temperature: prompt.temperature.or(self.0.temperature),
        };
        ModelRequest::new("/v1/chat/completions", &body)
    }
}
