//! The sections of the configuration.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use zeroize::Zeroizing;

/// What is remembered, and where.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct ContextConfig {
    /// How many messages of history a prompt holds at least, of a conversation that has as many. The history grows to four
    /// times as many and is then cut back to this many, in whole exchanges, so that a local model seldom has to read the
    /// whole prompt anew.
    pub last_n: usize,
    /// Whether a prompt holds exactly `last_n` messages of history, also in contexts, and exactly what was said within a
    /// rolling window.
    pub exact: bool,
    /// Whether the history is what was said within the window, instead of the newest messages, for conversations whose own
    /// settings do not say it.
    pub rolling_window: bool,
    /// How many seconds the window reaches back, for conversations whose own settings do not say it.
    pub window_seconds: u64,
    /// The most messages that are kept of a conversation whose own settings do not say it; no limit where `None` or 0.
    pub max_messages: Option<u32>,
    /// After how many seconds without a message such a conversation expires; never where `None` or 0.
    pub ttl_seconds: Option<u64>,
    /// The folder of the store; the platform's cache folder where `None`.
    pub storage_root: Option<PathBuf>,
    /// The key file; `key` in the user's configuration folder where `None`.
    pub key_file: Option<PathBuf>,
    /// An open file descriptor with the key: 64 hexadecimal digits or a passphrase. It is read once, at loading.
    pub key_fd: Option<u32>,
    /// The name of the systemd credential with the key, read likewise; `sottovoce.key`, if there is one, where `None`.
    pub key_credential: Option<String>,
    /// The share of its budget that a prompt may fill before older messages are summarized, 0 to 1; never where `None`.
    pub compact_at: Option<f64>,
    /// From how many bytes on a tool's result is kept as an artifact, with a line about it in its place; never where
    /// `None`.
    pub long_result: Option<u64>,
    /// The most functions that a model may call for one answer to read artifacts and what was said earlier; 0 is none.
    pub memory_calls: usize,
    /// The most bytes that one of them gives.
    pub memory_bytes: usize,
    /// The most bytes of an artifact that stands in the prompt of a model that cannot call functions; 0 is none.
    pub inline_artifact: usize,
    /// Whether card numbers, e-mail addresses and telephone numbers are masked before sealing.
    pub redact: bool,
    /// Utterances that were heard with less confidence are kept out of later prompts, 0 to 1; none where `None`.
    pub min_confidence: Option<f64>,
}

/// The form in which a model server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ModelKind {
    /// Ollama's own.
    Ollama,
    /// OpenAI's chat completions, as llama.cpp's server, LM Studio, vLLM and LocalAI speak them too.
    OpenAi,
}

/// The model that prompts are for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct LanguageModelConfig {
    /// The form in which the server is spoken to.
    pub kind: ModelKind,
    /// The server's address.
    pub base_url: String,
    /// The file with the key that an OpenAI server wants, read when the server is first needed.
    pub api_key_file: Option<PathBuf>,
    /// The model's name on that server.
    pub model: String,
    /// The system prompt.
    pub system_prompt: String,
    /// The context window, in tokens, that every request asks for; the server's default, and no budget, where `None`.
    /// An OpenAI server is not asked for a window: prompts keep to the smaller one of this and what the server tells.
    pub num_ctx: Option<u32>,
    /// The most tokens of an answer, which the prompt leaves free; a quarter of the window where `None`.
    pub num_predict: Option<u32>,
    /// How long the server keeps the model loaded: `30m`, or seconds, where -1 is for ever.
    pub keep_alive: Option<String>,
    /// Whether a thinking model thinks aloud first.
    pub think: Option<bool>,
    /// The sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// What a million tokens of prompts and answers cost, in whatever currency; 0 for a model of one's own.
    pub price_per_million: f64,
    /// Whether the server is to refuse a prompt that is too long instead of cutting it silently.
    pub strict: bool,
    /// Whether a model may be asked that runs on other people's machines.
    pub allow_cloud: bool,
    /// The most seconds that the server may be silent.
    pub timeout_seconds: u64,
    /// The most bytes of one answer: words, thoughts and tool calls together.
    pub max_answer_bytes: usize,
    /// The most tool calls of one answer.
    pub max_tool_calls: usize,
    /// The most seconds from the beginning of one answer to its end.
    pub max_answer_seconds: u64,
    /// Whether an utterance is refused while another one is being answered, instead of waiting for its turn.
    pub refuse_when_busy: bool,
}

/// How many contexts there may be, and what becomes of those that are over.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct PersonasConfig {
    /// The most contexts that are neither deleted nor expired.
    pub max_contexts: u32,
    /// The most messages of one.
    pub max_messages: u32,
    /// How many days after upkeep has first found it expired or deleted a context is removed.
    pub remove_after_days: u32,
    /// How many daily backups are kept; none are made where it is 0.
    pub daily_backups: u32,
    /// The folder that backups go to; `backups` in the store's folder where `None`.
    pub backup_folder: Option<PathBuf>,
}

/// When a client's own model is asked, where the client offers that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Sampling {
    /// Never.
    Never,
    /// Where the configured model cannot be reached or is not there.
    Fallback,
    /// Instead of the configured model.
    Always,
}

/// What the MCP server may do. `Debug` shows no token.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct McpConfig {
    /// Which conversations it may touch, by spaces or commas: `contexts`, and scopes such as `default` or `named/diary`.
    pub scopes: String,
    /// When a client that offers to ask its own model is asked to.
    pub prefer_sampling: Sampling,
    /// What a client must show over HTTP; needed for addresses that other machines reach.
    #[serde(skip)]
    pub token: Option<Zeroizing<String>>,
}

impl fmt::Debug for McpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpConfig")
            .field("scopes", &self.scopes)
            .field("prefer_sampling", &self.prefer_sampling)
            .finish_non_exhaustive()
    }
}
