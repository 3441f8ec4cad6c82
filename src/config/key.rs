//! The known settings and their types.

use serde_json::Value;

use crate::crypto::PLACEHOLDER_KEY;
use crate::message::texts::SYSTEM_PROMPT;

/// A known setting.
pub(super) struct Key {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Default,
    /// Whether a file in the current folder may set it. Another person may have written that file.
    pub(super) is_open: bool,
    /// Whether it may be null, which no default value may be unless it says so.
    pub(super) is_optional: bool,
    /// Whether it closes a server to those who show no secret. An empty one was lost on the way, and must not let in
    /// everybody.
    pub(super) is_closing: bool,
}

/// The type of a setting.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Count {
        most: u64,
    },
    Number {
        most: f64,
    },
    Flag,
    Text,
    /// A text such as `30m`, or a number of seconds.
    Time,
    /// One of these words.
    Choice(&'static [&'static str]),
    Path,
    Secret,
    /// A secret. Settings files do not hold it, because people share such files.
    Token,
}

#[derive(Clone, Copy)]
pub(super) enum Default {
    Null,
    Count(u64),
    Number(f64),
    Flag(bool),
    Text(&'static str),
}

pub(super) const KEYS: [Key; 76] = [
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
    key("Context.Redact", Kind::Flag, Default::Flag(false)),
    open("Context.MinConfidence", Kind::Number { most: 1.0 }, Default::Null),
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
    open("Personas.MaxContexts", Kind::Count { most: 100_000 }, Default::Count(1000)),
    open("Personas.MaxMessages", Kind::Count { most: 10_000_000 }, Default::Count(100_000)),
    key("Personas.RemoveAfterDays", Kind::Count { most: 36_500 }, Default::Count(7)),
    key("Personas.DailyBackups", Kind::Count { most: 1000 }, Default::Count(7)),
    key("Personas.BackupFolder", Kind::Path, Default::Null),
    key("Mcp.Scopes", Kind::Text, Default::Text("contexts")),
    key(
        "Mcp.PreferSampling",
        Kind::Choice(&["never", "fallback", "always"]),
        Default::Text("fallback"),
    ),
    key("Mcp.Token", Kind::Secret, Default::Null).closing(),
    key("Mcp.Address", Kind::Text, Default::Null),
    key("Mcp.Hosts", Kind::Text, Default::Text("")),
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
    key("Page.Address", Kind::Text, Default::Null),
    key("Page.Token", Kind::Secret, Default::Null).closing(),
    key("Page.Hosts", Kind::Text, Default::Text("")),
    key("Page.TlsCertificate", Kind::Path, Default::Null),
    key("Page.TlsKey", Kind::Path, Default::Null),
    key("Page.ReadOnly", Kind::Flag, Default::Flag(false)),
    key("Page.LockAfterSeconds", Kind::Count { most: 86_400 }, Default::Count(900)),
    key("Wyoming.Addresses", Kind::Text, Default::Text("127.0.0.1:10700")).or_null(),
    key("Wyoming.Map", Kind::Text, Default::Text("")),
    key("Wyoming.Allow", Kind::Text, Default::Text("")),
    key("Wyoming.Phrases", Kind::Text, Default::Text("")),
    key("Wyoming.Announce", Kind::Flag, Default::Flag(false)),
    key("Sync.IntervalSeconds", Kind::Count { most: 86_400 }, Default::Count(60)),
    key("Sync.CredentialsFile", Kind::Path, Default::Null),
    key("Up.HealthAddress", Kind::Text, Default::Text("127.0.0.1:11436")).or_null(),
];

/// A hundred years, in seconds.
const LONGEST: u64 = 100 * 365 * 86_400;

/// A setting that decides where words and keys go, what is deleted, or what is masked. A file in the current folder
/// may not set it.
const fn key(path: &'static str, kind: Kind, default: Default) -> Key {
    let is_optional = matches!(default, Default::Null);
    Key { path, kind, default, is_open: false, is_optional, is_closing: false }
}

/// A setting that any file may set.
const fn open(path: &'static str, kind: Kind, default: Default) -> Key {
    Key { is_open: true, ..key(path, kind, default) }
}

impl Key {
    const fn or_null(self) -> Self {
        Self { is_optional: true, ..self }
    }

    const fn closing(self) -> Self {
        Self { is_closing: true, ..self }
    }

    pub(super) fn section(&self) -> &'static str {
        self.path.split('.').next().unwrap_or_default()
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Token)
    }

    pub(super) fn expects(&self) -> String {
        let kind = match self.kind {
            Kind::Count { most } => format!("a whole number from 0 to {most}"),
            Kind::Number { most } => format!("a number from 0 to {most}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Text | Kind::Time | Kind::Secret | Kind::Token => "a text".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Path => "a path".to_owned(),
        };
        if self.is_optional { format!("{kind}, or null") } else { kind }
    }

    /// The default, as a settings file would say it.
    pub(super) fn default_value(&self) -> Value {
        match self.default {
            Default::Null => Value::Null,
            Default::Count(count) => count.into(),
            Default::Number(number) => number.into(),
            Default::Flag(flag) => flag.into(),
            Default::Text(text) => text.into(),
        }
    }
}
