//! Conversations that were forgotten completely and have no folder any more. The default conversation's settings keep
//! the highest number of each. A writer that starts such a conversation again first records these numbers as
//! forgotten, so that nothing brings the old messages back.

use crate::crypto::fingerprint;
use crate::error::Result;
use crate::scope::Scope;
use crate::store::folder::{Folder, settings};
use crate::store::read::tail::Tail;
use crate::store::record::layout::QUARANTINE;
use crate::store::record::name::{NameTime, RecordKind, RecordName};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::seq_set::forget_record::ForgetRecord;
use crate::store::record::store_state::ForgottenConversation;
use crate::store::write::committer::Committer;

/// The conversation's digest, so that a list names nobody.
pub(crate) fn digest(scope: &Scope) -> [u8; 16] {
    let parts = scope.parts();
    let items: Vec<&[u8]> =
        std::iter::once("sottovoce/v1 forgotten").chain(parts).map(str::as_bytes).collect();
    fingerprint(&items)
}

/// The conversation's id in the settings' list.
pub(crate) fn id(scope: &Scope) -> String {
    format!("{:032x}", u128::from_be_bytes(digest(scope)))
}

/// The entry of this conversation, if it was forgotten completely. `None` if the default conversation's settings
/// cannot be read: that is no reason to refuse a new message.
pub(crate) fn find(folder: &Folder) -> Result<Option<ForgottenConversation>> {
    if matches!(*folder.scope, Scope::Default | Scope::Catalog) {
        return Ok(None);
    }
    let root = folder.of_root();
    let (profile, _) = settings::read(&root, root.head()?.1, None)?;
    Ok(profile.forgotten_scopes.get(&id(&folder.scope)).copied())
}

/// Records the numbers of a completely forgotten conversation before it assigns new ones.
pub(crate) fn record(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let Some(ForgottenConversation { last, at }) = find(committer.folder)? else { return Ok(()) };
    let Some(before) = last.checked_sub(1).filter(|before| *before > 0) else { return Ok(()) };
    let erased = SeqSet::up_to(before);
    let plaintext = ForgetRecord { erased, ..ForgetRecord::default() }.to_plaintext()?;
    let name = RecordName { time: NameTime::try_from(at)?, seq: last, kind: RecordKind::Forget };
    committer.folder.publish(committer.key, name, &plaintext)?;
    tail.last_seq = last;
    committer.acknowledge(tail)?;
    *tail = Tail::load_alone(committer.folder, 0, None)?;
    Ok(())
}

/// Whether the folder has only forget records.
pub(crate) fn is_bare(committer: &Committer<'_>, tail: &Tail) -> Result<bool> {
    let folder = committer.folder;
    let all = SeqSet::up_to(tail.last_seq);
    let (profile, listing) = (&tail.profile, folder.list()?);
    if !tail.knows_settings()
        || !all.without(&tail.without_message()).is_empty()
        || profile.assigned_persona.is_some()
        || profile.has_words()
        || listing.names.iter().any(|name| !name.is_forget())
        || !listing.packs.is_empty()
        || !listing.foreign.is_empty()
        || !listing.leftovers.is_empty()
    {
        return Ok(false);
    }
    let aside = folder.directory.folder(QUARANTINE);
    let mut is_bare = true;
    for beside in [&folder.packs, &folder.snapshots, &folder.artifacts, &aside] {
        beside.list(&mut |name, _| is_bare &= name == crate::directory::LOCK.as_bytes())?;
    }
    Ok(is_bare)
}
