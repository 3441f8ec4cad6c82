//! Effective settings, and what they say of the key.

use std::sync::Arc;

use serde::Serialize;

use crate::crypto::EncryptionKey;

/// What the configuration says of the key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ConfiguredKey {
    /// Nothing: the key file decides.
    Absent,
    /// The public placeholder: the key file decides.
    Placeholder,
    /// A secret string, a passphrase, or the key in a file descriptor or a credential.
    Secret {
        /// The key made of it.
        key: Arc<EncryptionKey>,
        /// Whether a patient attacker may guess it: a string of under 20 characters, a passphrase of under 12.
        short: bool,
        /// The setting that gives it.
        from: String,
    },
}

/// One effective setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Setting {
    /// Its key, such as `Context.LastN`.
    pub key: &'static str,
    /// Its value, a secret one redacted.
    pub value: serde_json::Value,
    /// The file, the environment variable, or `default`.
    pub origin: String,
}
