//! Changes of settings by what comes from elsewhere.

use crate::error::Result;
use crate::store::{ConversationStore, FileConversationStore, Profile};

/// Changes a conversation's settings. Writes nothing if that leaves them as they are, since writing would create the
/// conversation.
pub(crate) async fn change(
    store: &FileConversationStore,
    change: impl Fn(&mut Profile) + Send + 'static,
) -> Result<()> {
    let here = store.profile().await?;
    let mut after = Profile::clone(&here);
    change(&mut after);
    if after != *here {
        store.change_profile(Box::new(change)).await?;
    }
    Ok(())
}
