//! The sections of the configuration: their settings, and the structs that hold the values.

use std::path::PathBuf;
#[cfg(feature = "recall")]
use std::sync::Arc;

use serde::Deserialize;

use super::key::{Default, Key, Kind, key, open};
use super::setting::Secret;
#[cfg(feature = "recall")]
use crate::context::recall::{Recall, RecallContextProvider, ScoreFloor};
use crate::context::recall_sources::RecallSources;
use crate::crypto::PLACEHOLDER_KEY;
use crate::message::texts::SYSTEM_PROMPT;

/// Every known setting, in the order of the documentation.
pub(super) fn keys() -> impl Iterator<Item = &'static Key> {
    [CONTEXT, LANGUAGE_MODEL, PERSONAS, MCP, SERVE, PAGE, WYOMING, SYNC, UP].into_iter().flatten()
}

/// A hundred years, in seconds.
const LONGEST: u64 = 100 * 365 * 86_400;

const CONTEXT: &[Key] = &[
    open("Context.LastN", Kind::Count { most: 10_000 }, Default::Count(6)),
    open("Context.Exact", Kind::Flag, Default::Flag(false)),
    open("Context.RollingWindow", Kind::Flag, Default::Flag(false)),
    open("Context.WindowSeconds", Kind::Count { most: LONGEST }, Default::Count(86_400)),
    key("Context.MaxMessages", Kind::Count { most: 1_000_000 }, Default::Null),
    key("Context.TtlSeconds", Kind::Count { most: LONGEST }, Default::Null),
    key("Context.StorageRoot", Kind::Path, Default::Null),
    key("Context.EncryptionKey", Kind::Secret, Default::Text(PLACEHOLDER_KEY)),
    key("Context.KeyFile", Kind::Path, Default::Null),
    key("Context.Passphrase", Kind::Secret, Default::Null),
    key("Context.KeyFd", Kind::Count { most: 65_535 }, Default::Null),
    key("Context.KeyCredential", Kind::Text, Default::Null),
    open("Context.CompactAt", Kind::Number { most: 1.0 }, Default::Number(0.75)).or_null(),
    open("Context.LongResult", Kind::Count { most: 1 << 20 }, Default::Count(16_384)).or_null(),
    open("Context.MemoryCalls", Kind::Count { most: 100 }, Default::Count(8)),
    open("Context.MemoryBytes", Kind::Count { most: 1 << 20 }, Default::Count(8192)),
    open("Context.InlineArtifact", Kind::Count { most: 1 << 20 }, Default::Count(4096)),
    open("Context.Recall.Tokens", Kind::Count { most: 1 << 20 }, Default::Count(256)),
    open("Context.Recall.MinScore", Kind::Number { most: 100.0 }, Default::Null),
    key("Context.Recall.Sources", Kind::Choice(&["people", "said", "all"]), Default::Text("said")),
    key("Context.Redact", Kind::Flag, Default::Flag(false)),
    open("Context.MinConfidence", Kind::Number { most: 1.0 }, Default::Null),
];

/// The section `Context.Recall`: what is brought into prompts from earlier in the conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RecallConfig {
    /// The most tokens that are brought in; 0 turns recall off.
    pub tokens: usize,
    /// The score that a message must reach; `None` lets the encoder decide whether the utterance needs anything.
    pub(crate) min_score: Option<f64>,
    /// Whose words come in by themselves.
    pub(crate) sources: RecallSources,
}

#[cfg(feature = "recall")]
impl RecallConfig {
    /// The provider of what was said earlier, as configured, from this index.
    pub fn provider(&self, recall: Arc<Recall>) -> RecallContextProvider {
        let floor = ScoreFloor::configured(self.min_score);
        let provider = RecallContextProvider::new(recall).tokens(self.tokens).floor(floor);
        provider.sources(self.sources)
    }
}

/// The section `Context`: the history, its limits and its storage.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContextConfig {
    /// The least number of messages of history in a prompt, if the conversation has as many. The history grows to
    /// four times this number and is then cut back to it, in whole exchanges, so that a local model seldom reads the
    /// whole prompt again.
    pub last_n: usize,
    /// Whether a prompt holds exactly `last_n` messages of history, also in contexts, and exactly the messages of a
    /// rolling window.
    pub exact: bool,
    /// Whether the history is a rolling window instead of the newest messages. Applies to conversations without their
    /// own setting.
    pub rolling_window: bool,
    /// The length of the window in seconds. Applies to conversations without their own setting.
    pub window_seconds: u64,
    /// The most messages of a conversation without its own setting; `None` or 0 means no limit.
    pub max_messages: Option<u32>,
    /// After how many seconds without a message such a conversation expires; `None` or 0 means never.
    pub ttl_seconds: Option<u64>,
    /// The folder of the store; `None` means the platform's cache folder.
    pub storage_root: Option<PathBuf>,
    /// The key file; `None` means `key` in the user's configuration folder.
    pub(crate) key_file: Option<PathBuf>,
    /// An open file descriptor with the key: 64 hexadecimal digits or a passphrase. It is read once, when the
    /// configuration is loaded.
    pub(crate) key_fd: Option<u32>,
    /// The name of the systemd credential with the key, read once. `None` means `sottovoce.key`, if that exists.
    pub(crate) key_credential: Option<String>,
    /// The share of its budget, 0 to 1, at which a prompt's older messages are summarized; `None` means never.
    pub compact_at: Option<f64>,
    /// Tool results of more than this many bytes become artifacts, and the message keeps a line about them; `None`
    /// means never.
    pub(crate) long_result: Option<u64>,
    /// The most calls in one answer of functions that read artifacts and earlier messages; 0 offers none.
    pub(crate) memory_calls: usize,
    /// The most bytes that one of these calls returns.
    pub(crate) memory_bytes: usize,
    /// The largest artifact, in bytes, in the prompt of a model that cannot call functions; 0 includes none.
    pub(crate) inline_artifact: usize,
    /// Whether card numbers, e-mail addresses and telephone numbers are masked before sealing.
    pub redact: bool,
    /// What is brought into prompts from earlier in the conversation.
    pub recall: RecallConfig,
    /// Utterances heard with less confidence than this, 0 to 1, are left out of later prompts; `None` leaves out
    /// none.
    pub(crate) min_confidence: Option<f64>,
}

/// The protocol of a model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ModelKind {
    /// Ollama's own.
    Ollama,
    /// OpenAI's chat completions, which llama.cpp's server, LM Studio, vLLM and LocalAI offer too.
    OpenAi,
}

const LANGUAGE_MODEL: &[Key] = &[
    key("LanguageModel.Kind", Kind::Choice(&["ollama", "openai"]), Default::Text("ollama")),
    key("LanguageModel.BaseUrl", Kind::Text, Default::Text("http://127.0.0.1:11434")),
    key("LanguageModel.ApiKey", Kind::Token, Default::Null),
    key("LanguageModel.ApiKeyFile", Kind::Path, Default::Null),
    open("LanguageModel.Model", Kind::Text, Default::Text("llama3.2")),
    open("LanguageModel.SystemPrompt", Kind::Text, Default::Text(SYSTEM_PROMPT)),
    open("LanguageModel.NumCtx", Kind::Count { most: 1 << 24 }, Default::Count(4096)).or_null(),
    open("LanguageModel.NumPredict", Kind::Count { most: 1 << 24 }, Default::Count(512)).or_null(),
    open("LanguageModel.KeepAlive", Kind::Time, Default::Text("30m")).or_null(),
    open("LanguageModel.Think", Kind::Flag, Default::Null),
    open("LanguageModel.Temperature", Kind::Number { most: 2.0 }, Default::Null),
    open("LanguageModel.PricePerMillion", Kind::Number { most: 1e6 }, Default::Number(0.0)),
    open("LanguageModel.Strict", Kind::Flag, Default::Flag(true)),
    key("LanguageModel.AllowCloud", Kind::Flag, Default::Flag(false)),
    open("LanguageModel.TimeoutSeconds", Kind::Count { most: 86_400 }, Default::Count(120)),
    key("LanguageModel.MaxAnswerBytes", Kind::Count { most: 1 << 30 }, Default::Count(262_144)),
    key("LanguageModel.MaxToolCalls", Kind::Count { most: 10_000 }, Default::Count(64)),
    key("LanguageModel.MaxAnswerSeconds", Kind::Count { most: 86_400 }, Default::Count(600)),
    open("LanguageModel.RefuseWhenBusy", Kind::Flag, Default::Flag(false)),
];

/// The section `LanguageModel`: the model that answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LanguageModelConfig {
    /// The server's protocol.
    pub kind: ModelKind,
    /// The server's address.
    pub base_url: String,
    /// The file with the API key of an OpenAI server. It is read when the server is first needed.
    pub(crate) api_key_file: Option<PathBuf>,
    /// The model's name on that server.
    pub model: String,
    /// The system prompt.
    pub system_prompt: String,
    /// The context window in tokens that every request asks for. `None` means the server's default, and no budget.
    /// OpenAI's protocol has no such field: prompts then keep to this window or the one that the server reports,
    /// whichever is smaller.
    pub num_ctx: Option<u32>,
    /// The most tokens of an answer. The prompt leaves them free. `None` means a quarter of the window.
    pub num_predict: Option<u32>,
    /// How long the server keeps the model loaded: a duration such as `30m`, or seconds; -1 means for ever.
    pub keep_alive: Option<String>,
    /// Whether a thinking model thinks before it answers.
    pub think: Option<bool>,
    /// The sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// The price of a million tokens of prompts and answers, in any currency; 0 for a local model.
    pub price_per_million: f64,
    /// Whether the server must refuse a prompt that is too long instead of cutting it silently.
    pub(crate) strict: bool,
    /// Whether a model on other people's machines may be asked.
    pub allow_cloud: bool,
    /// The longest time, in seconds, that the server may be silent.
    pub timeout_seconds: u64,
    /// The most bytes of one answer: text, thoughts and tool calls together.
    pub max_answer_bytes: usize,
    /// The most tool calls of one answer.
    pub(crate) max_tool_calls: usize,
    /// The most seconds from the start of one answer to its end.
    pub max_answer_seconds: u64,
    /// Whether an utterance is refused while another one is being answered. Otherwise it waits.
    pub(crate) refuse_when_busy: bool,
}

const PERSONAS: &[Key] = &[
    open("Personas.MaxContexts", Kind::Count { most: 100_000 }, Default::Count(1000)),
    open("Personas.MaxMessages", Kind::Count { most: 10_000_000 }, Default::Count(100_000)),
    key("Personas.RemoveAfterDays", Kind::Count { most: 36_500 }, Default::Count(7)),
    key("Personas.DailyBackups", Kind::Count { most: 1000 }, Default::Count(7)),
    key("Personas.BackupFolder", Kind::Path, Default::Null),
];

/// The section `Personas`: limits of contexts and their upkeep.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PersonasConfig {
    /// The most contexts that are neither deleted nor expired.
    pub(crate) max_contexts: u32,
    /// The most messages of one context.
    pub max_messages: u32,
    /// Upkeep removes a context this many days after it first found it expired or deleted.
    pub remove_after_days: u32,
    /// Of how many days the backups of each context are kept. With 0, none are made.
    pub(crate) daily_backups: u32,
    /// The folder for backups; `None` means `backups` in the store's folder.
    pub backup_folder: Option<PathBuf>,
}

const SERVE: &[Key] = &[
    key("Serve.Address", Kind::Text, Default::Text("127.0.0.1:11435")).or_null(),
    key("Serve.Token", Kind::Secret, Default::Null).closing(),
    key("Serve.KeysFile", Kind::Path, Default::Null).closing(),
    key("Serve.Hosts", Kind::Text, Default::Text("")),
    key("Serve.TlsCertificate", Kind::Path, Default::Null),
    key("Serve.TlsKey", Kind::Path, Default::Null),
    key("Serve.HistoryTokens", Kind::Count { most: 1 << 20 }, Default::Count(512)),
    key("Serve.MoveTime", Kind::Flag, Default::Flag(true)),
    key("Serve.Threads", Kind::Flag, Default::Flag(false)),
    key("Serve.MaxRequestBytes", Kind::Count { most: 1 << 30 }, Default::Count(32 << 20)),
    key("Serve.MaxConnections", Kind::Count { most: 65_535 }, Default::Count(256)),
];

/// The section `Serve`: the endpoint in front of the model server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct ServeConfig {
    /// The address and port to listen on; `None` for not listening unless told where.
    pub address: Option<String>,
    /// The token that opens every conversation. For addresses that other machines can reach, this or a file of keys is
    /// required.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// The file of keys, each for some of the conversations.
    pub keys_file: Option<PathBuf>,
    /// Host names that clients may use for this machine besides those of loopback, separated by spaces or commas.
    pub hosts: String,
    /// The file with the certificates for TLS, in PEM.
    pub tls_certificate: Option<PathBuf>,
    /// The file with the certificate's key, in PEM.
    pub tls_key: Option<PathBuf>,
    /// The most tokens of what was said before a client's session that its prompts get; 0 for nothing.
    pub history_tokens: usize,
    /// Whether the current time at the end of a client's system prompt moves to the newest utterance, so that the
    /// prompt's beginning stays the same.
    pub move_time: bool,
    /// Whether `user` or `conversation` in a request names a thread of the conversation.
    pub threads: bool,
    /// The largest request in bytes.
    pub max_request_bytes: usize,
    /// The most connections at once.
    pub max_connections: usize,
}

/// When to ask a client's own model, if the client offers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Sampling {
    /// Never.
    Never,
    /// If the configured model cannot be reached or does not exist.
    Fallback,
    /// Instead of the configured model.
    Always,
}

const MCP: &[Key] = &[
    key("Mcp.Scopes", Kind::Text, Default::Text("contexts")),
    key(
        "Mcp.PreferSampling",
        Kind::Choice(&["never", "fallback", "always"]),
        Default::Text("fallback"),
    ),
    key("Mcp.Token", Kind::Secret, Default::Null).closing(),
    key("Mcp.Address", Kind::Text, Default::Null),
    key("Mcp.Hosts", Kind::Text, Default::Text("")),
];

/// The section `Mcp`: the rights of the MCP server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct McpConfig {
    /// The conversations that it may use, separated by spaces or commas: `contexts`, and scopes such as `default` or
    /// `named/diary`.
    pub scopes: String,
    /// When to ask a client's own model, if the client offers it.
    pub prefer_sampling: Sampling,
    /// The token that a client must show over HTTP. Required for addresses that other machines can reach.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// The address and port to listen on; `None` for not listening unless told where.
    pub address: Option<String>,
    /// Host names that clients may use for this machine besides those of loopback, separated by spaces or commas.
    pub hosts: String,
}

const PAGE: &[Key] = &[
    key("Page.Address", Kind::Text, Default::Null),
    key("Page.Token", Kind::Secret, Default::Null).closing(),
    key("Page.Hosts", Kind::Text, Default::Text("")),
    key("Page.TlsCertificate", Kind::Path, Default::Null),
    key("Page.TlsKey", Kind::Path, Default::Null),
    key("Page.ReadOnly", Kind::Flag, Default::Flag(false)),
    key("Page.LockAfterSeconds", Kind::Count { most: 86_400 }, Default::Count(900)),
];

/// The section `Page`: the owner's page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct PageConfig {
    /// The address and port at which a process with all servers listens for the page; `None` for not listening.
    pub address: Option<String>,
    /// The secret that opens the page besides its link. Required for addresses that other machines can reach.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// Host names that browsers may use for this machine besides those of loopback, separated by spaces or commas.
    pub hosts: String,
    /// The certificate for HTTPS, in PEM.
    pub tls_certificate: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    pub tls_key: Option<PathBuf>,
    /// Whether nothing can be changed on the page.
    pub read_only: bool,
    /// The seconds without a request after which the page locks; 0 for never.
    pub lock_after_seconds: u64,
}

const WYOMING: &[Key] = &[
    key("Wyoming.Addresses", Kind::Text, Default::Text("127.0.0.1:10700")).or_null(),
    key("Wyoming.Map", Kind::Text, Default::Text("")),
    key("Wyoming.Allow", Kind::Text, Default::Text("")),
    key("Wyoming.Phrases", Kind::Text, Default::Text("")),
    key("Wyoming.Announce", Kind::Flag, Default::Flag(false)),
];

/// The section `Wyoming`: the conversation agent. Its lists are separated by spaces or commas.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct WyomingConfig {
    /// The addresses and ports to listen on, each with `=SCOPE` if it has a conversation of its own; `None` for not
    /// listening unless told where.
    pub addresses: Option<String>,
    /// The conversations of satellites and devices: `assist_satellite.kitchen=named/kitchen`.
    pub map: String,
    /// The addresses of other machines that may connect.
    pub allow: String,
    /// What is spoken when there is no answer: `pl=Nie teraz.`, separated by `|`.
    pub phrases: String,
    /// Whether the agent is announced in the local network.
    pub announce: bool,
}

const SYNC: &[Key] = &[
    key("Sync.IntervalSeconds", Kind::Count { most: 86_400 }, Default::Count(60)),
    key("Sync.CredentialsFile", Kind::Path, Default::Null),
];

/// The section `Sync`: how servers share conversations with other devices, if the store syncs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct SyncConfig {
    /// The seconds between two syncs while something happens; 0 if servers do not sync.
    pub interval_seconds: u64,
    /// The file with the credentials for the remote, readable by its owner alone; `None` means the environment.
    pub credentials_file: Option<PathBuf>,
}

const UP: &[Key] =
    &[key("Up.HealthAddress", Kind::Text, Default::Text("127.0.0.1:11436")).or_null()];

/// The section `Up`: what the process that runs all servers adds to them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct UpConfig {
    /// The address and port for health and metrics; `None` for none.
    pub health_address: Option<String>,
}
