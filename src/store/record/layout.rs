//! Names of a store's files and folders.

/// The head, in a conversation's folder.
pub(crate) const HEAD: &str = "head";

/// The vault: the list of the store's keys, in its root.
pub(crate) const VAULT: &str = "vault";

/// A file without meaning, in the root: room that forgetting on a full disk takes.
pub(crate) const RESERVE: &str = "reserve";

/// Packs, in a conversation's folder.
pub(crate) const PACKS: &str = "packs";

/// Snapshots, in a conversation's folder.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// Artifacts, in a conversation's folder.
pub(crate) const ARTIFACTS: &str = "artifacts";

/// Segments of the search index, in a conversation's folder.
pub(crate) const RECALL: &str = "recall";

/// Quarantined files, in a conversation's folder and in its folders of packs, snapshots and artifacts.
pub(crate) const QUARANTINE: &str = "quarantine";

/// The folder in the root with the lock of the process that syncs.
pub(crate) const SYNCING: &str = "syncing";

/// The folder in the root with the lock of the process that exchanges messages with teams.
pub(crate) const SHARING: &str = "sharing";

/// The catalog of conversations, in the root.
pub(crate) const CATALOG: &str = "catalog";

/// A removed conversation's folder moves here before it is deleted, so that it disappears in one step.
pub(crate) const REMOVED: &str = ".gone";
