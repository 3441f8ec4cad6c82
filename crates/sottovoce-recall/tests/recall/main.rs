//! The crate from outside: ranking, search, languages and hostile texts.

mod conversations;
mod hostile;
mod languages;
mod ranking;
mod search;
