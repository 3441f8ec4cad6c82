//! Reads a conversation, without its lock.

pub(crate) mod head_path;
pub(crate) mod location;
pub(crate) mod newest_names;
pub(crate) mod origin_index;
pub(crate) mod query;
pub(crate) mod range_cache;
pub(crate) mod reader;
pub(crate) mod record_cache;
pub(crate) mod record_dump;
pub(crate) mod reverse_scan;
pub(crate) mod scan;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod thread;
pub(crate) mod window;
