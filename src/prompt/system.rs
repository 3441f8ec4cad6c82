//! The system prompt.

use std::fmt;

/// Where the system prompt comes from: a fixed text, usually `LanguageModel.SystemPrompt` of the configuration.
#[derive(Clone, Default)]
pub struct SystemPromptProvider(String);

impl SystemPromptProvider {
    /// This text, in every prompt.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn system_prompt(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SystemPromptProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemPromptProvider({} bytes)", self.0.len())
    }
}
