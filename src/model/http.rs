//! HTTP clients of model servers: connection, requests and answers.

mod answer;
mod client;
mod fact_cache;
mod near;
mod reason;
mod reply;

pub(super) use client::HttpClient;
pub(super) use fact_cache::FactCache;
pub(super) use reason::words;
pub use reply::HttpReply;
