//! What a server says of its models.

use jiff::Timestamp;

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Its name, such as `llama3.2:latest`.
    pub name: String,
    /// Bytes on the server's disk.
    pub size: Option<u64>,
    /// When the server last got or changed it.
    pub modified: Option<Timestamp>,
    /// What it descends from, such as `llama`.
    pub family: Option<String>,
    /// How many weights it has, such as `3.2B`.
    pub parameter_size: Option<String>,
    /// How they are stored, such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// Whether it runs on another machine.
    pub remote: bool,
}

/// What a model can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Such as `completion`, `tools` and `thinking`; empty where the server does not say.
    pub capabilities: Vec<String>,
    /// The tokens that it was trained on at a time.
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

/// A model that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningModel {
    /// Its name, such as `llama3.2:latest`.
    pub name: String,
    /// Tokens of prompt and answer together, as it was loaded.
    pub context_length: Option<u32>,
}

impl RunningModel {
    /// Whether a name means this model; without a tag it means the tag `latest`.
    pub fn is(&self, name: &str) -> bool {
        untagged(&self.name) == untagged(name)
    }
}

impl ModelEntry {
    /// Whether a name means this model; without a tag it means the tag `latest`.
    pub fn is(&self, name: &str) -> bool {
        untagged(&self.name) == untagged(name)
    }
}

fn untagged(name: &str) -> String {
    name.strip_suffix(":latest").unwrap_or(name).to_lowercase()
}
