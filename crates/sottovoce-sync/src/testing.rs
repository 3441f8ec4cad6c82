//! Opens what a space has at its remote

use std::sync::Arc;

use sottovoce::exchange::ObjectKind;
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
