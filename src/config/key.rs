//! What is known of a setting: its type, its default, and who may set it.

use serde_json::Value;

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

/// A setting that decides where words and keys go, what is deleted, or what is masked. A file in the current folder
/// may not set it.
pub(super) const fn key(path: &'static str, kind: Kind, default: Default) -> Key {
    let is_optional = matches!(default, Default::Null);
    Key { path, kind, default, is_open: false, is_optional, is_closing: false }
}

/// A setting that any file may set.
pub(super) const fn open(path: &'static str, kind: Kind, default: Default) -> Key {
    Key { is_open: true, ..key(path, kind, default) }
}

impl Key {
    pub(super) const fn or_null(self) -> Self {
        Self { is_optional: true, ..self }
    }

    pub(super) const fn closing(self) -> Self {
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
