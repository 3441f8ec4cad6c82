//! What a server reports about its models, for each kind of server.

use serde::Deserialize;

use crate::model::{ModelEntry, ModelInfo, RunningModel};

#[derive(Deserialize)]
pub(super) struct List {
    pub(super) data: Vec<Listed>,
}

/// A model in the list. Only the id is common to all servers.
#[derive(Deserialize, Default)]
pub(super) struct Listed {
    id: String,
    /// llama.cpp: the model's other names.
    #[serde(default)]
    aliases: Vec<String>,
    owned_by: Option<String>,
    /// llama.cpp: details.
    meta: Option<Meta>,
    /// vLLM: the window.
    max_model_len: Option<u32>,
    /// LM Studio: the trained and the loaded context length.
    max_context_length: Option<u32>,
    loaded_context_length: Option<u32>,
    #[serde(default)]
    capabilities: Vec<String>,
    arch: Option<String>,
    quantization: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    n_ctx: Option<u32>,
    n_ctx_train: Option<u32>,
    n_params: Option<u64>,
    size: Option<u64>,
    ftype: Option<String>,
}

/// The answer of llama.cpp's `/props`, which describes one slot.
#[derive(Deserialize)]
pub(super) struct Props {
    default_generation_settings: Option<Settings>,
    /// The abilities of its prompt template.
    chat_template_caps: Option<Template>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Template {
    supports_tools: bool,
    supports_tool_calls: bool,
}

#[derive(Deserialize)]
struct Settings {
    n_ctx: Option<u32>,
}

impl Props {
    pub(super) fn can_call(&self) -> bool {
        let template = self.chat_template_caps.as_ref();
        template.is_some_and(|template| template.supports_tools && template.supports_tool_calls)
    }

    pub(super) fn window(self) -> Option<u32> {
        self.default_generation_settings?.n_ctx.filter(|window| *window > 0)
    }
}

/// The listed model that a name means. llama.cpp accepts any name if it runs only one model.
pub(super) fn find<'a>(listed: &'a [Listed], model: &str) -> Option<&'a Listed> {
    let named = listed.iter().find(|l| l.id == model || l.aliases.iter().any(|a| a == model));
    named.or_else(|| match listed {
        [only] if only.is_of_llama_cpp() => Some(only),
        _ => None,
    })
}

impl Listed {
    pub(super) fn is_of_llama_cpp(&self) -> bool {
        self.owned_by.as_deref() == Some("llamacpp")
    }

    /// Whether requests may hold template arguments. llama.cpp and vLLM take them; other servers may refuse unknown
    /// fields.
    pub(super) fn has_template(&self) -> bool {
        self.is_of_llama_cpp() || self.owned_by.as_deref() == Some("vllm")
    }

    /// Whether the model can call functions, as LM Studio reports it.
    pub(super) fn can_call(&self) -> bool {
        self.capabilities.iter().any(|capability| capability == "tool_use")
    }

    /// The window that the model is loaded with, in tokens.
    pub(super) fn window(&self) -> Option<u32> {
        let of_llama_cpp = self.meta.as_ref().and_then(|meta| meta.n_ctx);
        let said = [of_llama_cpp, self.max_model_len, self.loaded_context_length];
        said.into_iter().flatten().filter(|window| *window > 0).min()
    }

    pub(super) fn entry(self, remote: bool) -> ModelEntry {
        let meta = self.meta.unwrap_or_default();
        ModelEntry {
            name: self.id,
            size: meta.size,
            modified: None,
            family: self.arch,
            parameter_size: meta.n_params.map(rounded),
            quantization: meta.ftype.or(self.quantization),
            remote,
        }
    }

    pub(super) fn info(&self, remote: bool) -> ModelInfo {
        let trained = self.meta.as_ref().and_then(|meta| meta.n_ctx_train);
        let context_length = trained.or(self.max_context_length).or(self.max_model_len);
        ModelInfo { capabilities: Vec::new(), context_length, remote }
    }

    pub(super) fn running(self, window: u32) -> RunningModel {
        RunningModel { name: self.id, context_length: Some(window) }
    }
}

/// A number of weights in the usual notation.
fn rounded(weights: u64) -> String {
    let tenths = |unit: u64| (weights / (unit / 10)) as f64 / 10.0;
    match weights {
        1_000_000_000.. => format!("{:.1}B", tenths(1_000_000_000)),
        1_000_000.. => format!("{}M", weights / 1_000_000),
        _ => weights.to_string(),
    }
}
