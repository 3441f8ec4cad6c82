//! The text by which a message is found: its own, and the beginnings of the artifacts that it refers to.

use std::io;

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::{
    ArtifactStore, ConversationStore, StoredMessage, artifact_references, blocking,
};

/// Bytes of a message's artifacts that are looked at.
pub(super) const MOST: usize = 64 << 10;

/// A message's own text, a line end, and the beginnings of the artifacts that it refers to.
pub(super) struct WholeText {
    pub(super) text: Zeroizing<String>,
    /// The artifacts, by id.
    pub(super) artifacts: Vec<String>,
    /// The byte from which the text of each stands here.
    pub(super) starts: Vec<usize>,
}

/// The text of a message together with that of its artifacts; `None` if it refers to no text.
///
/// # Errors
/// Those of opening the artifacts.
pub(super) async fn whole(
    store: &dyn ConversationStore,
    stored: &StoredMessage,
) -> Result<Option<WholeText>> {
    let own = &stored.message.content;
    let mut references = artifact_references(own).peekable();
    let Some(artifacts) = store.artifact_store().filter(|_| references.peek().is_some()) else {
        return Ok(None);
    };
    // The buffer never grows: growing would leave unwiped copies.
    let mut text = Zeroizing::new(String::with_capacity(own.len() + MOST + 1));
    text.push_str(own);
    let mut whole = WholeText { text, artifacts: Vec::new(), starts: Vec::new() };
    for id in references {
        let room = (own.len() + MOST + 1).saturating_sub(whole.text.len() + 1);
        if room == 0 || whole.artifacts.iter().any(|known| known == id) {
            continue;
        }
        let Some(beginning) = beginning(artifacts, id, room).await? else { continue };
        whole.text.push('\n');
        whole.starts.push(whole.text.len());
        whole.text.push_str(&beginning);
        whole.artifacts.push(id.to_owned());
    }
    Ok((!whole.artifacts.is_empty()).then_some(whole))
}

/// At most so many bytes of an artifact, whole lines; `None` if there is none or it is no text.
pub(super) async fn beginning(
    artifacts: &dyn ArtifactStore,
    id: &str,
    most: usize,
) -> Result<Option<Zeroizing<String>>> {
    let contents = artifacts.open_artifact(id).await?;
    let Some(contents) = contents.filter(|contents| contents.artifact().is_text()) else {
        return Ok(None);
    };
    let place = contents.artifact().reference();
    let read = move || contents.lines(1, u64::MAX, most).map_err(|error| failed(error, place));
    Ok(Some(blocking(read).await?.text))
}

fn failed(error: io::Error, place: String) -> Error {
    Error::io("read it", place, error)
}
