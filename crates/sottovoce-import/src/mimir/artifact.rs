//! Artifacts of a conversation: `{id}.txt` with the contents, and `{id}.txt.meta.json`.

use serde::Deserialize;
use sottovoce::Result;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::metadata::MIMIR_ID;
use sottovoce::import::{ImportedArtifact, ImportedMessages, Refusal};
use sottovoce::store::{ArtifactKind, NewArtifact};

use super::small_file::{required, small_file};
use crate::fields::notes::{self, Raw};
use crate::fields::{json, time};
use crate::source::{EntryKind, Folder, artifact, misnamed};
use crate::system::MIMIR;

/// The ending of contents files.
const CONTENTS: &str = ".txt";
/// The further ending of their metadata files.
const META: &str = ".meta.json";

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    #[serde(rename = "createdAt")]
    created_at: Option<String>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

/// Reads the artifacts. File names come from the listing, never from metadata, which could point elsewhere.
pub(super) fn read(
    level: &Folder,
    conversation: &str,
    messages: &mut ImportedMessages,
) -> Result<Vec<ImportedArtifact>> {
    let mut artifacts = Vec::new();
    for (name, kind) in level.list(&mut messages.refused)? {
        if name.ends_with(META.as_bytes()) {
            continue;
        }
        let Some(id) = name.strip_suffix(CONTENTS.as_bytes()) else {
            messages.passed_over.add("files of another kind", 1);
            continue;
        };
        let (EntryKind::File, Ok(id)) = (kind, str::from_utf8(id)) else {
            messages.refused.push(level.refusal(&name, misnamed(kind)));
            continue;
        };
        let file = format!("{id}{CONTENTS}");
        let meta = format!("{file}{META}");
        let read = small_file(level, &meta)?.and_then(required);
        match read.and_then(|bytes| about(&bytes, id)) {
            Ok(new) => artifacts.push(artifact((MIMIR, conversation, id), new, level, file)),
            Err(reason) => messages.refused.push(Refusal::new(level.place(&meta), reason)),
        }
    }
    Ok(artifacts)
}

fn about(bytes: &[u8], id: &str) -> Result<NewArtifact, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of an artifact")?;
    let name = fields.name.unwrap_or_else(|| id.to_owned());
    let mut new = NewArtifact::new(ArtifactKind::from(fields.kind), name);
    if let Some(mime_type) = fields.mime_type {
        new = new.mime_type(mime_type);
    }
    if let Some(at) = fields.created_at {
        let (at, _) = time::parse(&at).ok_or(Corrupt("its createdAt is not a time"))?;
        new = new.created_at(at);
    }
    for (name, value) in notes::of(MIMIR, fields.metadata.unwrap_or_default()) {
        new = new.with_metadata(name, value);
    }
    Ok(new.with_metadata(MIMIR_ID, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = about(&bytes, "art-1");
        }
    }
}
