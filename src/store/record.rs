//! Plain values of the store: names, encodings and rules. Does no I/O.

pub(crate) mod artifact;
pub(crate) mod description;
pub(crate) mod document;
pub(crate) mod encoding;
pub(crate) mod finding;
pub(crate) mod head;
pub(crate) mod id_prefix;
pub(crate) mod import_digest;
pub(crate) mod layout;
pub(crate) mod name;
pub(crate) mod persona;
pub(crate) mod profile;
pub(crate) mod read_result;
pub(crate) mod retention;
pub(crate) mod seq_set;
pub(crate) mod snapshot;
pub(crate) mod store_state;
pub(crate) mod summary;
pub(crate) mod validation;
