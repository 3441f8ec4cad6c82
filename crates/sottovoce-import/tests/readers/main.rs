//! Integration tests of the readers.

#[path = "../../../../tests/common/mod.rs"]
mod common;

mod chorus;
mod claude;
mod discord;
mod elara;
mod elara_export;
mod jsonl;
mod llm_generator;
mod mimir;
mod openai;
