//! Lists the contents of a conversation's folder.

use super::{ATTEMPTS, Folder, Listing, Packs, no_file, unstable_folder};
use crate::directory::{EntryKind, TEMPORARY};
use crate::error::{Error, Result};
use crate::scope::{BACKUPS, SCOPE_FOLDERS, Scope};
use crate::store::record::document::Document;
use crate::store::record::finding::FindingKind;
use crate::store::record::layout::{CATALOG, PACKS, QUARANTINE};
use crate::store::record::name::pack_name::PackName;

/// Files of a conversation that are neither records nor documents.
const SIDECARS: [&[u8]; 9] = [
    b"vault",
    b"head",
    b"lock",
    b"reserve",
    b"artifacts",
    b"snapshots",
    b"recall",
    b"syncing",
    b"sharing",
];

impl Folder {
    /// Lists the folder and then the folder of packs. Records only move from the first to the second, so that each is
    /// seen at least once.
    pub(crate) fn list(&self) -> Result<Listing> {
        let mut listing = self.list_loose()?;
        self.list_packs(&mut listing)?;
        listing.foreign.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(listing)
    }

    /// Lists the packs until two listings are equal. During a merge one listing may miss both the old packs and the
    /// new one. Both listings miss the same records only if these are merged twice.
    fn list_packs(&self, listing: &mut Listing) -> Result<()> {
        let mut seen = None;
        for _ in 0..ATTEMPTS {
            let mut packs = self.packs_at_once()?;
            packs.names.sort_unstable();
            if seen.as_ref() == Some(&packs.names) {
                listing.packs = packs.names;
                listing.foreign.append(&mut packs.foreign);
                listing.leftovers.append(&mut packs.leftovers);
                return Ok(());
            }
            seen = Some(packs.names);
        }
        Err(unstable_folder(self))
    }

    /// The packs of a single listing, in no order.
    pub(crate) fn packs_at_once(&self) -> Result<Packs> {
        let Packs { mut names, mut foreign, mut leftovers } = Packs::default();
        let listed = self.packs.list(&mut |name, kind| {
            let pack: Option<PackName> =
                str::from_utf8(name).ok().and_then(|name| name.parse().ok());
            let place = || [PACKS.as_bytes(), b"/", name].concat();
            match (pack, kind) {
                (Some(pack), EntryKind::File) => names.push(pack),
                (Some(_), _) => foreign.push(no_file(kind).in_file(place())),
                _ if name.starts_with(TEMPORARY.as_bytes()) => {
                    leftovers.push(FindingKind::Leftover.in_file(place()));
                }
                _ if name == QUARANTINE.as_bytes() => {}
                _ => foreign.push(FindingKind::Foreign.in_file(place())),
            }
        });
        match listed {
            // A link or file instead of the folder of packs does not affect loose records.
            Err(Error::NotPlain { path, found }) if path == self.packs.path() => {
                foreign.push(FindingKind::NotPlain(found).in_file(PACKS));
            }
            listed => listed?,
        }
        Ok(Packs { names, foreign, leftovers })
    }

    fn list_loose(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        let at_root = *self.scope == Scope::Default;
        self.directory.list(&mut |name, kind| {
            let record = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
            match (record, kind) {
                (Some(record), EntryKind::File) => listing.names.push(record),
                (Some(_), _) => listing.foreign.push(no_file(kind).in_file(name)),
                _ if name == PACKS.as_bytes() => {}
                _ if name == QUARANTINE.as_bytes() => {}
                _ if SIDECARS.contains(&name) || Document::is_name(name) => {}
                _ if at_root && SCOPE_FOLDERS.iter().any(|other| other.as_bytes() == name) => {}
                (_, EntryKind::Folder) if at_root && name == CATALOG.as_bytes() => {}
                // Sealed backups of their own. The import examines them.
                (_, EntryKind::Folder) if at_root && name == BACKUPS.as_bytes() => {}
                _ if name.starts_with(TEMPORARY.as_bytes()) => {
                    listing.leftovers.push(FindingKind::Leftover.in_file(name));
                }
                _ => listing.foreign.push(FindingKind::Foreign.in_file(name)),
            }
        })?;
        Ok(listing)
    }
}
