//! Reads lines of an artifact that is text.

use std::io::{self, Read, Seek};

use zeroize::Zeroizing;

use crate::store::artifact::contents::ArtifactContents;

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

impl std::fmt::Debug for ArtifactLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArtifactLines")
            .field("first", &self.first)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

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
