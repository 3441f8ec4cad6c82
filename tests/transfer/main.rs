//! What comes in from other systems and what goes out, by system.

#[path = "../common/mod.rs"]
mod common;

mod backup_hostile;
mod backup_merge;
mod backup_settings;
mod chorus;
mod discord;
mod elara;
mod export;
mod jsonl;
mod llm_generator;
mod mimir;
mod openai;
