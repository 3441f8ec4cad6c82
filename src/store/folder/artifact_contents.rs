//! Reads an artifact's contents, one segment at a time.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::crypto::{AssociatedData, HEADER, Kind, SEGMENT, StreamOpener, text_length};
use crate::directory::Source;
use crate::error::Result;
use crate::store::folder::{Folder, unreadable};
use crate::store::record::artifact::Artifact;
use crate::store::record::finding::FindingKind;

/// The error text for contents whose seal does not verify.
const CHANGED: &str = "an artifact's seal does not fit: it was changed or cut off";

/// An artifact's contents, readable from any position. The file store keeps at most 64 KiB of them in memory.
pub struct ArtifactContents {
    artifact: Artifact,
    contents: Box<dyn ReadSeek>,
}

/// What contents are read from.
trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

impl ArtifactContents {
    /// The contents of an artifact, as an [`ArtifactStore`](crate::store::ArtifactStore) of your own returns them.
    pub fn new(artifact: Artifact, contents: impl Read + Seek + Send + 'static) -> Self {
        Self { artifact, contents: Box::new(contents) }
    }

    /// Reads all contents. Returns what is wrong with them, if anything.
    pub(crate) fn check(mut self) -> Result<Option<FindingKind>> {
        let digest = match digest(&mut self.contents, |_| Ok(()))? {
            Ok(digest) => digest,
            Err(kind) => return Ok(Some(kind)),
        };
        Ok((hex(&digest) != self.artifact.sha256).then_some(FindingKind::BadRecord))
    }

    /// The artifact's metadata.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }
}

impl Read for ArtifactContents {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.contents.read(into)
    }
}

impl Seek for ArtifactContents {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.contents.seek(to)
    }
}

debug_shows!(ArtifactContents: artifact);

/// The contents of a sealed file, segment by segment.
pub(crate) struct Text {
    source: Box<dyn Source>,
    opener: StreamOpener,
    size: u64,
    position: u64,
    /// The open segment: its number and its plaintext.
    open: Option<(u64, Zeroizing<Vec<u8>>)>,
}

impl Text {
    pub(crate) fn new(source: Box<dyn Source>, opener: StreamOpener) -> Self {
        let size = text_length(source.size()).unwrap_or(0);
        Self { source, opener, size, position: 0, open: None }
    }

    /// The rest of the segment that has the next byte; empty at the end.
    fn rest(&mut self) -> io::Result<&[u8]> {
        if self.position >= self.size {
            return Ok(&[]);
        }
        let (segment, offset) = StreamOpener::find(self.position);
        let text = match self.open.take() {
            Some((at, text)) if at == segment => text,
            before => self.open_segment(segment, before.map(|(_, text)| text))?,
        };
        let (_, text) = self.open.insert((segment, text));
        Ok(text.get(offset..).unwrap_or_default())
    }

    fn open_segment(
        &self,
        segment: u64,
        buffer: Option<Zeroizing<Vec<u8>>>,
    ) -> io::Result<Zeroizing<Vec<u8>>> {
        // The buffer never grows: growing would leave unwiped copies.
        let mut text = buffer.unwrap_or_else(|| Zeroizing::new(Vec::with_capacity(SEGMENT)));
        let (start, length) = self.opener.bounds(segment);
        text.resize(length, 0);
        let changed = || io::Error::new(io::ErrorKind::InvalidData, CHANGED);
        if self.source.read_at(start, &mut text)? != length {
            return Err(changed());
        }
        self.opener.open(segment, &mut text).ok_or_else(changed)?;
        Ok(text)
    }
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = self.rest()?;
        let length = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..length), rest.get(..length)) {
            into.copy_from_slice(rest);
        }
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Text {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, offset) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::End(offset) => (self.size, offset),
            SeekFrom::Current(offset) => (self.position, offset),
        };
        let negative =
            || io::Error::new(ErrorKind::InvalidInput, "a position before the beginning");
        self.position = from.checked_add_signed(offset).ok_or_else(negative)?;
        Ok(self.position)
    }
}

/// What an artifact's contents are bound to.
pub(crate) fn associated<'a>(scope: &'a [&'a str], id: &'a str) -> AssociatedData<'a> {
    AssociatedData::of(Kind::Artifact, scope, id)
}

/// The opener for a file's segments and the id of the key that sealed it.
pub(crate) fn opener(
    folder: &Folder,
    id: &str,
    source: &dyn Source,
) -> Result<Result<(StreamOpener, String), FindingKind>> {
    let mut header = [0; HEADER];
    let sealed = source.size();
    if text_length(sealed).is_none() {
        return Ok(Err(FindingKind::Damaged("it is cut off")));
    }
    if let Err(error) = source.read_at(0, &mut header) {
        return Ok(Err(FindingKind::Unreadable(error.kind())));
    }
    let scope = folder.scope.parts();
    for key in folder.sealing_keys()? {
        let key = key?;
        let Some(opener) = StreamOpener::new(key, &associated(&scope, id), &header, sealed) else {
            continue;
        };
        // Opening a segment is the only way to test the key.
        let (start, length) = opener.bounds(0);
        let mut first = Zeroizing::new(vec![0; length]);
        if let Err(error) = source.read_at(start, &mut first) {
            return Ok(Err(FindingKind::Unreadable(error.kind())));
        }
        if opener.open(0, &mut first).is_some() {
            return Ok(Ok((opener, key.id().to_owned())));
        }
    }
    Ok(Err(FindingKind::Unopenable))
}

/// Opens an artifact's contents. The inner error says what is wrong with the file.
pub(crate) fn open(
    folder: &Folder,
    artifact: Artifact,
) -> Result<Result<ArtifactContents, FindingKind>> {
    let source = match folder.artifacts.open(&artifact.id) {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(Err(FindingKind::Absent)),
        Err(error) => return unreadable(error).map(Err),
    };
    if text_length(source.size()) != Some(artifact.size) {
        return Ok(Err(FindingKind::Damaged("it is not as long as it was")));
    }
    let opened = opener(folder, &artifact.id, &*source)?;
    Ok(opened.map(|(opener, _)| ArtifactContents::new(artifact, Text::new(source, opener))))
}

/// The digest of the contents, read piece by piece. The inner error says what is wrong with them.
pub(crate) fn digest(
    text: &mut impl Read,
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Result<[u8; 32], FindingKind>> {
    let mut digest = Sha256::new();
    let mut piece = Zeroizing::new(vec![0; SEGMENT]);
    loop {
        let read = match text.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Ok(Err(FindingKind::Unopenable));
            }
            Err(error) => return Ok(Err(FindingKind::Unreadable(error.kind()))),
        };
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Ok(digest.finalize().into()));
        }
        digest.update(bytes);
        visit(bytes)?;
    }
}

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes per read.
const PIECE: usize = 1 << 16;

/// Lines of an artifact. `Debug` shows no words.
#[derive(Clone)]
#[non_exhaustive]
pub struct ArtifactLines {
    /// The lines.
    pub text: Zeroizing<String>,
    /// The number of the first line, from 1.
    pub first: u64,
    /// The number of the last line; less than `first` if there are none.
    pub last: u64,
    /// Whether the last line was cut because it exceeds the byte limit by itself.
    pub is_cut: bool,
    /// Whether more lines follow.
    pub has_more: bool,
}

debug_shows!(ArtifactLines: first, last);

impl ArtifactContents {
    /// Reads whole lines from this one on, the first being 1: at most `lines` of them with at most `most_bytes`
    /// bytes. Cuts a line only if it exceeds the byte limit by itself. Reads the contents from the beginning to the
    /// last of these lines.
    ///
    /// # Errors
    /// What prevents reading them.
    pub fn lines(mut self, from: u64, lines: u64, most_bytes: usize) -> io::Result<ArtifactLines> {
        self.rewind()?;
        let first = from.max(1);
        let end = first.saturating_add(lines);
        // The buffer never grows: growing would leave unwiped copies.
        let mut text = Zeroizing::new(Vec::with_capacity(most_bytes));
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        let (mut line, mut has_more, mut is_full) = (1, false, false);
        'reading: loop {
            let read = self.read(&mut piece)?;
            if read == 0 {
                break;
            }
            for part in piece.get(..read).unwrap_or_default().split_inclusive(|byte| *byte == b'\n')
            {
                if line >= end {
                    has_more = true;
                    break 'reading;
                }
                if line >= first {
                    let room = most_bytes.saturating_sub(text.len());
                    text.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
                    if part.len() > room {
                        (has_more, is_full) = (true, true);
                        break 'reading;
                    }
                }
                line += u64::from(part.ends_with(b"\n"));
            }
        }
        let mut is_cut = false;
        if is_full {
            match text.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => text.truncate(at + 1),
                None => {
                    is_cut = true;
                    let whole = str::from_utf8(&text).map_or_else(|e| e.valid_up_to(), str::len);
                    text.truncate(whole);
                }
            }
        }
        let breaks = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let begun = u64::from(is_cut || (!text.is_empty() && !text.ends_with(b"\n")));
        let text = Zeroizing::new(String::from_utf8_lossy(&text).into_owned());
        Ok(ArtifactLines { text, first, last: first - 1 + breaks + begun, is_cut, has_more })
    }
}

#[cfg(test)]
mod tests {
    use crate::crypto::EncryptionKey;
    use crate::store::{ArtifactKind, ArtifactStore, NewArtifact, StoreOptions};

    #[tokio::test]
    async fn lines_are_whole_unless_one_alone_does_not_fit() {
        let key = EncryptionKey::generate().unwrap();
        let store = StoreOptions::new(key).open_in_memory().await.unwrap();
        let text = "one\ntwo\n\nfour äää\nfive";
        let new = NewArtifact::new(ArtifactKind::File, "n");
        let id =
            store.add_artifact(new, Box::new(text.as_bytes())).await.unwrap().artifact.id.clone();
        for (from, lines, most, read, last, is_cut, has_more) in [
            (1, 2, 100, "one\ntwo\n", 2, false, true),
            (0, 99, 100, text, 5, false, false),
            (3, 1, 100, "\n", 3, false, true),
            (5, 1, 100, "five", 5, false, false),
            (6, 1, 100, "", 5, false, false),
            (1, 9, 9, "one\ntwo\n\n", 3, false, true),
            (1, 9, 10, "one\ntwo\n\n", 3, false, true),
            (4, 9, 6, "four ", 4, true, true),
        ] {
            let contents = store.open_artifact(&id).await.unwrap().unwrap();
            let found = contents.lines(from, lines, most).unwrap();
            assert_eq!(
                (found.text.as_str(), found.last, found.is_cut, found.has_more),
                (read, last, is_cut, has_more),
                "{from} {lines} {most}"
            );
        }
    }
}
