//! Seals an artifact's contents while reading them, without holding all of them in memory.

use std::io::{ErrorKind, Read};

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::crypto::{StreamSealer, random};
use crate::directory::{Sink, Streamed};
use crate::error::{Error, Result};
use crate::store::artifact::contents;
use crate::store::folder::Folder;
use crate::store::record::artifact::{Artifact, NewArtifact, is_id};
use crate::store::record::encoding::LONGEST_RECORD;
/// Bytes per read.
const PIECE: usize = 1 << 16;

/// Size, digest and line count of the bytes read so far.
struct Measure {
    size: u64,
    digest: Sha256,
    breaks: u64,
    last: Option<u8>,
    utf8: Utf8,
}

/// Checks whether bytes that arrive in pieces are UTF-8.
#[derive(Default)]
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

impl Measure {
    fn new() -> Self {
        let (digest, utf8) = (Sha256::new(), Utf8::default());
        Self { size: 0, digest, breaks: 0, last: None, utf8 }
    }

    fn take(&mut self, bytes: &[u8]) {
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

    fn artifact(self, new: &NewArtifact, id: String, now: Timestamp) -> Artifact {
        let sha256 = contents::hex(&self.digest.finalize());
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

/// The outcome of sealing contents.
pub(crate) struct Sealed {
    pub(crate) artifact: Artifact,
    /// The key's id.
    pub(crate) kid: String,
    /// The id of the artifact that already has the same bytes. Nothing was published then.
    pub(crate) same: Option<String>,
}

/// Seals contents into a file with an id of their own. The file is durable once the folder is synced, and is no
/// artifact before the settings list it. Publishes nothing if `known` finds an artifact with the same digest.
pub(crate) fn seal(
    folder: &Folder,
    new: &NewArtifact,
    content: &mut dyn Read,
    now: Timestamp,
    known: &dyn Fn(&str) -> Option<String>,
) -> Result<Sealed> {
    let id = match &new.id {
        Some(id) if is_id(id) => id.clone(),
        Some(_) => {
            return Err(Error::InvalidMessage {
                reason: "an artifact's id is 32 hexadecimal digits",
            });
        }
        None => random_id()?,
    };
    if new.name.len() + new.kind.as_str().len() > LONGEST_RECORD / 8 {
        return Err(Error::InvalidMessage { reason: "the artifact's name is too long" });
    }
    let key = folder.writing_key()?;
    let scope = folder.scope.parts();
    let mut sealed = None;
    let streamed = folder.artifacts.stream(&mut |sink| {
        let sealer = StreamSealer::new(key, &contents::associated(&scope, &id))?;
        let measure = seal_all(sealer, content, sink)?;
        let artifact = measure.artifact(new, id.clone(), now);
        let same = known(&artifact.sha256);
        let name = same.is_none().then(|| id.clone());
        sealed = Some(Sealed { artifact, kid: key.id().to_owned(), same });
        Ok(name)
    })?;
    match (streamed, sealed) {
        (Streamed::Taken(id), _) => Err(Error::Damaged {
            place: folder.artifacts.path().join(id).display().to_string(),
            reason: "an unlisted file has its name; a repair removes it",
        }),
        (_, Some(sealed)) => Ok(sealed),
        (_, None) => Err(Error::ShuttingDown),
    }
}

fn seal_all(
    mut sealer: StreamSealer,
    content: &mut dyn Read,
    sink: &mut Sink<'_>,
) -> Result<Measure> {
    let mut measure = Measure::new();
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    loop {
        let read = match content.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read what is to be kept", "the artifact", error)),
        };
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        measure.take(bytes);
        sealer.write(bytes, sink)?;
    }
    sealer.finish(sink)?;
    Ok(measure)
}

fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(contents::hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_bytes_however_it_is_cut() {
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
            let mut measure = Measure::new();
            measure.take(text.as_bytes());
            let new = NewArtifact::new(crate::store::ArtifactKind::File, "x");
            let artifact = measure.artifact(&new, String::new(), Timestamp::UNIX_EPOCH);
            assert_eq!(artifact.lines, Some(lines), "{text:?}");
        }
    }
}
