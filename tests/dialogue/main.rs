//! Integration tests of prompts, turns, contexts and settings.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/ollama.rs"]
mod stub;

mod appsettings;
mod context_upkeep;
mod contexts;
mod endless;
mod gauge;
mod golden;
mod memory;
mod ollama;
mod open_conversations;
mod openai;
mod own_model;
mod personas;
mod pruning;
mod recall;
mod summarizing;
mod summary_limits;
mod tool_results;
mod turn;
mod window;
