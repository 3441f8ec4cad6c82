//! What a server reports about its models.

use jiff::Timestamp;

/// A model on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Its name, such as `llama3.2:latest`.
    pub name: String,
    /// Its size on the server's disk in bytes.
    pub size: Option<u64>,
    /// When the server last downloaded or changed it.
    pub modified: Option<Timestamp>,
    /// Its family, such as `llama`.
    pub family: Option<String>,
    /// Its number of weights, such as `3.2B`.
    pub parameter_size: Option<String>,
    /// Its quantization, such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// Whether it runs on another machine.
    pub remote: bool,
}

/// The abilities of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Such as `completion`, `tools` and `thinking`; empty if the server does not report them.
    pub capabilities: Vec<String>,
    /// The context length that it was trained with, in tokens.
    pub context_length: Option<u32>,
    /// Whether it runs on another machine.
    pub remote: bool,
}

impl ModelInfo {
    /// Whether it has a capability, by the server's name for it.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|has| has == capability)
    }
}

/// A loaded model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningModel {
    /// Its name, such as `llama3.2:latest`.
    pub name: String,
    /// The window for prompt and answer in tokens, as loaded.
    pub context_length: Option<u32>,
}

impl RunningModel {
    /// Whether a name means this model. A name without a tag has the tag `latest`.
    pub fn is(&self, name: &str) -> bool {
        untagged(&self.name) == untagged(name)
    }
}

impl ModelEntry {
    /// Whether a name means this model. A name without a tag has the tag `latest`.
    pub fn is(&self, name: &str) -> bool {
        untagged(&self.name) == untagged(name)
    }
}

fn untagged(name: &str) -> String {
    name.strip_suffix(":latest").unwrap_or(name).to_lowercase()
}
