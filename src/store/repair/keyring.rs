//! A vault for records that have lost theirs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::crypto::{Envelope, Place, Scratch, SealingKey};
use crate::error::{Error, Result};
use crate::store::folder::Folder;
use crate::store::folder::scopes::places;
use crate::store::keyring::Keyring;
use crate::store::keyring::line::Entry;
use crate::store::pack::lines::Lines;
use crate::store::pack::{OpenedPack, Pack};
use crate::store::record::layout::VAULT;

/// How many sealed files of each key bear which key id, of those that open: by the key's position and the id.
type KeyVotes = BTreeMap<(usize, String), u64>;

/// Makes the vault anew under the key ids that records bear, of whatever conversation: for each key at hand the id of
/// most of what opens under it. What another store of the same key left behind, or a thief planted, stays outside.
///
/// # Errors
/// [`Error::WrongKey`] where nothing opens under the first key, and nothing is made.
pub(crate) fn adopt(folder: &Folder, timeout: Duration) -> Result<()> {
    let (mut votes, mut stranger) = (KeyVotes::new(), None);
    for place in places(&folder.root, &mut Vec::new())? {
        let keys = folder.keys().to_vec();
        let there = Folder::new(Arc::clone(&folder.root), place.blobs, place.scope, keys);
        // What cannot even be listed has no say.
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
                // Without anything sealed there is nothing to adopt, and the writer says what it lacks.
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

/// Counts what opens in one conversation, and keeps a key id of what does not.
fn ask(folder: &Folder, votes: &mut KeyVotes, stranger: &mut Option<String>) -> Result<()> {
    let scope = folder.scope.parts();
    let mut hear = |place: &Place<'_>, bytes: &[u8]| {
        let Ok(envelope) = Envelope::parse(bytes) else {
            return;
        };
        let id = envelope.key_id.to_owned();
        let opens = |key| {
            let key = SealingKey::under_id(key, id.clone());
            key.open(place, &envelope, &mut Scratch::default()).is_some()
        };
        match folder.keys().iter().position(|key| opens(key)) {
            Some(key) => *votes.entry((key, id)).or_default() += 1,
            None => *stranger = Some(id),
        }
    };
    if let Some(bytes) = folder.head_bytes()? {
        hear(&Place::head(&scope), &bytes);
    }
    let listing = folder.list()?;
    for name in listing.names {
        let name = name.to_string();
        if let Ok(Some(bytes)) = folder.blobs.read(&name) {
            hear(&Place::record(&scope, &name), &bytes);
        }
    }
    for pack in listing.packs {
        let OpenedPack::Pack(pack) = Pack::open(folder, pack)? else {
            continue;
        };
        let mut lines = Lines::new(&pack);
        while let Some(line) = lines.next()? {
            if let Some(name) = line.name {
                hear(&Place::record(&scope, &name.to_string()), line.file());
            }
        }
    }
    Ok(())
}
