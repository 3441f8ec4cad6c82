//! Makes a vault for records whose vault was lost.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::crypto::{AssociatedData, Envelope, Scratch, SealingKey};
use crate::error::{Error, Result};
use crate::store::folder::Folder;
use crate::store::folder::conversation_folders::conversation_folders;
use crate::store::folder::keyring::Keyring;
use crate::store::folder::keyring::key_list::Entry;
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::record::layout::VAULT;

/// How many sealed files open under each key and have each key id, by the key's position and the id.
type KeyVotes = BTreeMap<(usize, String), u64>;

/// Makes a vault from the key ids in the records of all conversations: for each key at hand, the id that most of its
/// files have. Files that another store of the same key left behind, or that an attacker planted, are outvoted.
///
/// # Errors
/// [`Error::WrongKey`] if nothing opens under the first key. No vault is made then.
pub(crate) fn adopt(folder: &Folder, timeout: Duration) -> Result<()> {
    let (mut votes, mut stranger) = (KeyVotes::new(), None);
    for place in conversation_folders(&folder.root, &mut Vec::new())? {
        let keys = folder.keys().to_vec();
        let there = Folder::new(Arc::clone(&folder.root), place.directory, place.scope, keys);
        // A conversation that cannot be listed does not count.
        match ask(&there, &mut votes, &mut stranger) {
            Err(Error::NotPlain { .. } | Error::Io { .. }) => {}
            asked => asked?,
        }
    }
    let mut entries = Vec::new();
    for (position, key) in folder.keys().iter().enumerate() {
        let ids = votes.iter().filter(|((of, _), _)| *of == position);
        let most = ids.min_by_key(|((_, id), number)| (Reverse(**number), id.clone()));
        match most {
            Some(((_, id), _)) => entries.push(Entry::adopted(key, id.clone())?),
            None if position == 0 => {
                let place = folder.root.path().join(VAULT).display().to_string();
                let found = stranger.or_else(|| votes.into_keys().next().map(|(_, id)| id));
                // Without sealed files there is no id to use. The writer reports what is missing.
                return found.map_or(Ok(()), |found| Err(Error::WrongKey { place, found }));
            }
            None => {}
        }
    }
    let bytes = match (entries.first(), folder.keys().first()) {
        (Some(entry), Some(key)) => entry.bytes_of(key)?.ok_or(Error::NoKey)?,
        _ => return Err(Error::NoKey),
    };
    Keyring::publish(&*folder.root, &entries, &bytes, timeout)
}

/// Counts the files of one conversation that open, and notes a key id of one that does not.
fn ask(folder: &Folder, votes: &mut KeyVotes, stranger: &mut Option<String>) -> Result<()> {
    let scope = folder.scope.parts();
    let mut count = |associated: &AssociatedData<'_>, bytes: &[u8]| {
        let Ok(envelope) = Envelope::parse(bytes) else {
            return;
        };
        let id = envelope.key_id.to_owned();
        let opens = |key| {
            let key = SealingKey::under_id(key, id.clone());
            key.open(associated, &envelope, &mut Scratch::default()).is_some()
        };
        match folder.keys().iter().position(|key| opens(key)) {
            Some(key) => *votes.entry((key, id)).or_default() += 1,
            None => *stranger = Some(id),
        }
    };
    if let Some(bytes) = folder.head_bytes()? {
        count(&AssociatedData::head(&scope), &bytes);
    }
    let listing = folder.list()?;
    for name in listing.names {
        let name = name.to_string();
        if let Ok(Some(bytes)) = folder.directory.read(&name) {
            count(&AssociatedData::record(&scope, &name), &bytes);
        }
    }
    for pack in listing.packs {
        let OpenedPack::Pack(pack) = Pack::open(folder, pack)? else {
            continue;
        };
        let mut lines = PackLines::new(&pack);
        while let Some(line) = lines.next()? {
            if let Some(name) = line.name {
                count(&AssociatedData::record(&scope, &name.to_string()), line.file());
            }
        }
    }
    Ok(())
}
