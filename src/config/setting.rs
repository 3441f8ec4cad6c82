//! Effective settings, secrets, and the configured key.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use zeroize::Zeroizing;

use crate::crypto::EncryptionKey;

/// The key that the configuration gives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ConfiguredKey {
    /// None: the key file decides.
    Absent,
    /// The public placeholder: the key file decides.
    Placeholder,
    /// A secret string, a passphrase, or a key from a file descriptor or a credential.
    Secret {
        /// The derived key.
        key: Arc<EncryptionKey>,
        /// Whether an attacker could guess it: a string of under 20 characters, or a passphrase of under 12.
        short: bool,
        /// The setting that gives it.
        from: String,
    },
}

/// One effective setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Setting {
    /// Its path, such as `Context.LastN`.
    pub key: &'static str,
    /// Its value. Secrets are redacted.
    pub value: serde_json::Value,
    /// The file or environment variable that sets it, or `default`.
    pub origin: String,
}

impl Setting {
    /// What it does, in a sentence or two of the documentation, which is Markdown.
    pub fn meaning(&self) -> &'static str {
        const TABLES: &str = include_str!("../../docs/settings.md");
        let of_it = format!("| `{}` |", self.key);
        let row = TABLES.lines().find_map(|line| line.strip_prefix(of_it.as_str()));
        let cells = row.and_then(|row| row.split_once("| "));
        cells.map_or("", |(_default, meaning)| meaning.trim_end_matches(" |"))
    }
}

/// A secret setting. `Debug` does not show it.
#[derive(Clone, PartialEq)]
pub struct Secret(pub Zeroizing<String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn every_setting_has_a_meaning_without_the_table_around_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{}").unwrap();
        let config = Config::load_with(Some(file.path()), []).unwrap();
        for setting in config.settings() {
            let meaning = setting.meaning();
            assert!(meaning.len() > 10 && !meaning.contains(" | "), "{}: {meaning}", setting.key);
        }
    }
}
