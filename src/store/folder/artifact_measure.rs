//! Measures an artifact's contents: size, digest, and whether they are text.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::crypto::random;
use crate::error::{Error, Result};
use crate::store::folder::artifact_contents;
use crate::store::record::artifact::{Artifact, NewArtifact, is_id};
use crate::store::record::encoding::LONGEST_RECORD;

/// Works out the metadata of an artifact while its contents are read piece by piece, for an
/// [`ArtifactStore`](crate::store::ArtifactStore) of your own. `Debug` shows the size only.
///
/// ```
/// use sottovoce::store::{ArtifactKind, ArtifactMeasure, NewArtifact};
///
/// let mut measure = ArtifactMeasure::default();
/// measure.take(b"first line\nsecond line\n");
/// let new = NewArtifact::new(ArtifactKind::File, "notes.txt");
/// let artifact = measure.finish(&new, jiff::Timestamp::UNIX_EPOCH)?;
/// assert_eq!((artifact.size, artifact.lines), (23, Some(2)));
/// # Ok::<(), sottovoce::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ArtifactMeasure {
    size: u64,
    digest: Sha256,
    breaks: u64,
    last: Option<u8>,
    utf8: Utf8,
}

/// Checks whether bytes that arrive in pieces are UTF-8.
#[derive(Clone, Default)]
struct Utf8 {
    broken: bool,
    /// The start of a character that continues in the next piece.
    begun: Vec<u8>,
}

impl Utf8 {
    fn take(&mut self, mut bytes: &[u8]) {
        while !self.begun.is_empty() && !self.broken {
            let Some((next, rest)) = bytes.split_first() else { return };
            self.begun.push(*next);
            bytes = rest;
            match str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) => self.broken |= error.error_len().is_some(),
            }
        }
        if let Err(error) = str::from_utf8(bytes) {
            self.broken |= error.error_len().is_some();
            self.begun = bytes.get(error.valid_up_to()..).unwrap_or_default().to_vec();
        }
    }

    fn is_text(&self) -> bool {
        !self.broken && self.begun.is_empty()
    }
}

impl ArtifactMeasure {
    /// Adds the next bytes of the contents.
    pub fn take(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.digest.update(bytes);
        self.breaks += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.last = bytes.last().copied().or(self.last);
        // Text contains no zero byte.
        self.utf8.broken |= bytes.contains(&0);
        if !self.utf8.broken {
            self.utf8.take(bytes);
        }
    }

    /// The artifact with these contents, under an id of its own. `now` is its creation time if `new` has none.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] for a name that is too long.
    pub fn finish(self, new: &NewArtifact, now: Timestamp) -> Result<Artifact> {
        let id = id_of(new)?;
        Ok(self.artifact(new, id, now))
    }

    pub(crate) fn artifact(self, new: &NewArtifact, id: String, now: Timestamp) -> Artifact {
        let sha256 = artifact_contents::hex(&self.digest.finalize());
        let unended = self.last.is_some_and(|last| last != b'\n');
        let lines = self.utf8.is_text().then_some(self.breaks + u64::from(unended));
        let usual = if lines.is_some() { "text/plain" } else { "application/octet-stream" };
        Artifact {
            id,
            kind: new.kind.clone(),
            name: new.name.clone(),
            mime_type: new.mime_type.clone().unwrap_or_else(|| usual.to_owned()),
            size: self.size,
            sha256,
            lines,
            created_at: new.created_at.unwrap_or(now),
            metadata: new.metadata.clone(),
        }
    }
}

debug_shows!(ArtifactMeasure: size);

/// The id that a new artifact has, or a random one.
///
/// # Errors
/// [`Error::InvalidMessage`] for an id or a name that no artifact may have.
pub(crate) fn id_of(new: &NewArtifact) -> Result<String> {
    if new.name.len() + new.kind.as_str().len() > LONGEST_RECORD / 8 {
        return Err(Error::InvalidMessage { reason: "the artifact's name is too long" });
    }
    match &new.id {
        Some(id) if is_id(id) => Ok(id.clone()),
        Some(_) => {
            Err(Error::InvalidMessage { reason: "an artifact's id is 32 hexadecimal digits" })
        }
        None => random_id(),
    }
}

fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(artifact_contents::hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_distinguished_from_other_bytes_however_it_is_cut() {
        let text = "Grüße 👩‍👩‍👧‍👦\nありがとう".as_bytes();
        for size in 1..=text.len() {
            let mut utf8 = Utf8::default();
            text.chunks(size).for_each(|piece| utf8.take(piece));
            assert!(utf8.is_text(), "{size}");
        }
        for other in [&b"a\xff"[..], b"\xc3", b"\xf0\x9f\x91", b"\xc3\x28", b"\xed\xa0\x80"] {
            for size in 1..=other.len() {
                let mut utf8 = Utf8::default();
                other.chunks(size).for_each(|piece| utf8.take(piece));
                assert!(!utf8.is_text(), "{other:?} by {size}");
            }
        }
    }

    #[test]
    fn lines_are_counted_as_people_count_them() {
        for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)] {
            let mut measure = ArtifactMeasure::default();
            measure.take(text.as_bytes());
            let new = NewArtifact::new(crate::store::ArtifactKind::File, "x");
            let artifact = measure.artifact(&new, String::new(), Timestamp::UNIX_EPOCH);
            assert_eq!(artifact.lines, Some(lines), "{text:?}");
        }
    }
}
