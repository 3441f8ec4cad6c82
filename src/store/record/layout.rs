//! The names of a store's files and folders.

/// How far a conversation goes, in its folder.
pub(crate) const HEAD: &str = "head";

/// The keys of the store, in its root.
pub(crate) const VAULT: &str = "vault";

/// The folder of packs, in a conversation's folder.
pub(crate) const PACKS: &str = "packs";

/// The folder of snapshots, in a conversation's folder.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// The folder of artifacts, in a conversation's folder.
pub(crate) const ARTIFACTS: &str = "artifacts";

/// The folder for files that a repair set aside: in a conversation's folder, and in those of its packs, snapshots and
/// artifacts.
pub(crate) const QUARANTINE: &str = "quarantine";

/// The folder of the list of conversations, in the root.
pub(crate) const CATALOG: &str = "catalog";

/// The folder into which a conversation's folder is moved before it is deleted, so that it disappears in one step.
pub(crate) const REMOVED: &str = ".gone";
