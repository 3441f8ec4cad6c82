//! Sealing: AES-256-GCM envelopes under keys that are wiped after use.
//!
//! A seal covers the content and, as associated data, its place: the format, the key's id, the kind of file, the
//! scope and the file name. A file that is changed, renamed, moved to another conversation or used as another kind
//! does not open. This module knows nothing of messages or folders.

mod envelope;
mod fingerprint;
mod key;
mod key_file;
mod passphrase;
mod stream;

#[cfg(any(fuzzing, test))]
pub(crate) use envelope::line;
pub(crate) use envelope::{AssociatedData, Envelope, Kind, Malformed};
pub(crate) use fingerprint::fingerprint;
pub(crate) use key::{Derivation, Scratch, SealingKey, hex_line, random};
pub use key::{EncryptionKey, PLACEHOLDER_KEY};
pub(crate) use passphrase::{Argon2Params, KeyBytes, Salt};
pub(crate) use stream::{HEADER, SEGMENT, StreamOpener, StreamSealer, text_length};
