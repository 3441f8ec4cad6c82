//! Inventories of whole stores.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::directory::fs::FsDirectory;
use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::care::baseline::{self, Inventory};
use crate::store::file_store::blocking;
use crate::store::file_store::options::StoreOptions;
use crate::store::folder::conversation_folders::{conversation_folders, is_written};
use crate::store::record::encoding::{object, to_json};
use crate::store::record::finding::{Finding, FindingKind};

/// What all conversations of a store held at some time: an [`Inventory`] of each. Keep it in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreInventory {
    v: u64,
    conversations: Vec<ListedInventory>,
}

/// A conversation's inventory and its number in the catalog; 0 if it was not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedInventory {
    listed: u64,
    inventory: Inventory,
}

impl StoreInventory {
    /// Parses an inventory from [`to_json`](Self::to_json). `place` names it in errors.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn from_json(json: &[u8], place: &str) -> Result<Self> {
        let reason = "it is no inventory of all conversations";
        let damaged = || Error::Damaged { place: place.into(), reason };
        object::<Self>(json).filter(|inventory| inventory.v == 1).ok_or_else(damaged)
    }

    /// Formats the inventory as one line of JSON. Equal inventories give equal lines.
    ///
    /// # Errors
    /// None is expected: every inventory has a JSON form.
    pub fn to_json(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&to_json(self)?).into_owned() + "\n")
    }
}

impl StoreOptions {
    /// Takes an inventory of all conversations in a folder. Reads every record.
    ///
    /// # Errors
    /// Only what prevents reading the folder.
    pub async fn inventory(self, root: impl AsRef<Path>) -> Result<StoreInventory> {
        let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root.as_ref(), &[])?);
        blocking(move || self.take_all(&root)).await
    }

    /// Compares all conversations with an earlier inventory and returns findings about what they have lost. The
    /// findings' file names start with the conversations' folders. Reads every record.
    ///
    /// # Errors
    /// Only what prevents reading the folder.
    pub async fn compare(
        self,
        root: impl AsRef<Path>,
        earlier: StoreInventory,
    ) -> Result<Vec<Finding>> {
        let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root.as_ref(), &[])?);
        blocking(move || self.compare_all(&root, &earlier)).await
    }

    pub(crate) fn take_all(&self, root: &Arc<dyn Directory>) -> Result<StoreInventory> {
        let mut conversations = Vec::new();
        for place in conversation_folders(root, &mut Vec::new())? {
            if is_written(&*place.directory)? {
                let listed = self.listed_as(root, &place)?;
                let inventory = baseline::take(&self.reader_of(root, &place)?.folder, &|_| {})?;
                conversations.push(ListedInventory { listed, inventory });
            }
        }
        Ok(StoreInventory { v: 1, conversations })
    }

    pub(crate) fn compare_all(
        &self,
        root: &Arc<dyn Directory>,
        earlier: &StoreInventory,
    ) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let mut there = Vec::new();
        for place in conversation_folders(root, &mut Vec::new())? {
            if is_written(&*place.directory)? {
                there.push(place);
            }
        }
        let catalog = self.catalog(root)?;
        let off_the_list = catalog.reader.load(0)?.erased;
        for ListedInventory { listed, inventory } in &earlier.conversations {
            let of = |scope: &Scope| scope.parts().iter().eq(inventory.scope.iter());
            let Some(place) = there.iter().find(|place| of(&place.scope)) else {
                // A conversation that was removed since is recorded as such in the catalog.
                if *listed == 0 || !off_the_list.contains(*listed) {
                    findings.push(FindingKind::Vanished.in_file(inventory.scope.join("/")));
                }
                continue;
            };
            let reader = self.reader_of(root, place)?;
            let below = place.below.trim_end_matches('/');
            for mut finding in baseline::compare(&reader.folder, inventory, &|_| {})? {
                finding.file = Some(if below.is_empty() { "default" } else { below }.to_owned());
                findings.push(finding);
            }
        }
        Ok(findings)
    }
}
