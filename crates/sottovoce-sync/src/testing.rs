//! Opens what a space has at its remote

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sottovoce::Scope;
use sottovoce::exchange::{ObjectKind, Origin};
use zeroize::Zeroizing;

use crate::error::SyncResult;
use crate::id::Id;
use crate::space::Invitation;
use crate::stream::objects::Objects;
use sottovoce_remote::Remote;

/// The texts of all segments of these devices, listed by heads or not, so that a test can search them.
///
/// # Errors
/// Those of the remote.
pub async fn live_texts(
    remote: Arc<dyn Remote>,
    invitation: &Invitation,
    devices: &[Id],
) -> SyncResult<Vec<Zeroizing<Vec<u8>>>> {
    let objects = Objects::new(remote, invitation.space, &invitation.key)?;
    let mut texts = Vec::new();
    for device in devices {
        for object in objects.listed(*device).await? {
            if let Ok(Some(text)) = objects.object(ObjectKind::Segment, *device, object).await {
                texts.push(text);
            }
        }
    }
    Ok(texts)
}

/// What the streams of a space say that nobody has taken the place of.
#[derive(Debug, Default)]
pub struct Published {
    /// The texts of messages.
    pub said: BTreeMap<(Scope, Origin), String>,
    /// What was forgotten.
    pub gone: BTreeSet<Origin>,
}

/// Reads all streams of a space. What cannot be read is left out.
///
/// # Errors
/// Those of the remote.
pub async fn published(remote: Arc<dyn Remote>, invitation: &Invitation) -> SyncResult<Published> {
    let objects = Objects::new(remote, invitation.space, &invitation.key)?;
    let mut heads = Vec::new();
    for device in objects.devices().await?.0 {
        let head = objects.newest_head(device).await.ok().flatten();
        heads.extend(head.map(|head| (device, head)));
    }
    let replaced: BTreeSet<Id> = heads.iter().flat_map(|(_, head)| head.replaces.clone()).collect();
    let mut published = Published::default();
    for (device, head) in heads.iter().filter(|(device, _)| !replaced.contains(device)) {
        for listed in &head.segments {
            let Ok(Some(segment)) = objects.segment(*device, listed).await else { continue };
            for batch in segment.batches {
                let Ok(scope) = batch.scope.parse::<Scope>() else { continue };
                published.gone.extend(batch.gone);
                let shared = batch.said.into_iter().filter_map(|said| said.shared(&scope));
                let texts = shared.map(|said| (said.origin, said.message.content.clone()));
                published.said.extend(texts.map(|(origin, text)| ((scope.clone(), origin), text)));
            }
        }
    }
    Ok(published)
}
