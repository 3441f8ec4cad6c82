//! The systems' short names, for reports and for the metadata of imported messages.

#[cfg(feature = "sqlite")]
pub(crate) const CHORUS: &str = "chorus";
pub(crate) const CLAUDE: &str = "claude";
pub(crate) const DISCORD: &str = "discord";
pub(crate) const ELARA: &str = "elara";
pub(crate) const JSONL: &str = "jsonl";
#[cfg(feature = "sqlite")]
pub(crate) const LLM_GENERATOR: &str = "mcp-llm-generator";
pub(crate) const MIMIR: &str = "mimir";
pub(crate) const OPENAI: &str = "openai";
