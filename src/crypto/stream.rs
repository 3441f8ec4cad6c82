//! Streaming encryption of contents that are too long for memory, segment by segment.
//!
//! The format is Tink's AES-GCM-HKDF streaming AEAD with SHA-256, 32-byte keys and segments of 65,536 bytes. A header
//! holds its own length, a salt and a nonce prefix. Each segment is sealed under a key that HKDF derives from the
//! store's key, the salt and the associated data. A nonce ends with the segment's number and whether it is the last,
//! so that segments cannot be swapped or cut off.

use hkdf::Hkdf;
use sha2::Sha256;
use sottovoce_cipher::{Cipher, TAG};
use zeroize::Zeroizing;

use super::envelope::AssociatedData;
use super::key::{SealingKey, random};
use super::passphrase::KeyBytes;
use crate::error::{Error, Result};

/// Bytes of a sealed segment; the last may be shorter.
pub(crate) const SEGMENT: usize = 65_536;
/// The size of the header: its length byte, the salt and the nonce prefix. The header is part of the first segment.
pub(crate) const HEADER: usize = 1 + SALT + PREFIX;
const SALT: usize = 32;
const PREFIX: usize = 7;

/// The key of a content, and how its nonces begin.
struct Stream {
    cipher: Cipher,
    prefix: [u8; PREFIX],
}

impl Stream {
    fn nonce(&self, segment: u32, last: bool) -> [u8; 12] {
        let [a, b, c, d, e, f, g] = self.prefix;
        let [h, i, j, k] = segment.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, u8::from(last)]
    }
}

/// The bytes of plaintext in a segment.
fn room(segment: u64) -> usize {
    SEGMENT - TAG - if segment == 0 { HEADER } else { 0 }
}

/// The length of the plaintext of this many sealed bytes; `None` if no plaintext has that sealed length.
pub(crate) fn text_length(sealed: u64) -> Option<u64> {
    let segments = sealed.div_ceil(SEGMENT as u64).max(1);
    let last = sealed - (segments - 1) * SEGMENT as u64;
    let least = TAG + if segments == 1 { HEADER } else { 1 };
    // An empty plaintext is one segment. No other segment is empty.
    (last >= least as u64 && segments <= u64::from(u32::MAX))
        .then(|| sealed - HEADER as u64 - segments * TAG as u64)
}

fn stream(
    key: &SealingKey,
    associated: &AssociatedData<'_>,
    header: &[u8; HEADER],
) -> Option<Stream> {
    let (length, rest) = header.split_first()?;
    let (salt, prefix) = rest.split_first_chunk::<SALT>()?;
    let prefix: [u8; PREFIX] = prefix.try_into().ok()?;
    if usize::from(*length) != HEADER {
        return None;
    }
    let mut info = Vec::new();
    associated.encode(key.id(), &mut info);
    let mut derived = KeyBytes::default();
    Hkdf::<Sha256>::new(Some(salt), key.material()).expand(&info, derived.as_mut_slice()).ok()?;
    Some(Stream { cipher: Cipher::new(&derived), prefix })
}

/// Seals a plaintext that arrives in pieces.
pub(crate) struct StreamSealer {
    stream: Stream,
    header: Option<[u8; HEADER]>,
    segment: u32,
    buffer: Zeroizing<Vec<u8>>,
}

impl StreamSealer {
    pub(crate) fn new(key: &SealingKey, associated: &AssociatedData<'_>) -> Result<Self> {
        let mut header = [0; HEADER];
        random(&mut header)?;
        if let Some(length) = header.first_mut() {
            *length = HEADER as u8;
        }
        let stream = stream(key, associated, &header).ok_or(Error::NoRandomness)?;
        // The buffer never grows, because growing would leave bytes behind unwiped.
        let buffer = Zeroizing::new(Vec::with_capacity(SEGMENT));
        Ok(Self { stream, header: Some(header), segment: 0, buffer })
    }

    /// Takes more plaintext, and passes on complete segments.
    pub(crate) fn write(
        &mut self,
        mut text: &[u8],
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while !text.is_empty() {
            let free = room(self.segment.into()) - self.buffer.len();
            // A full segment is known not to be the last only when more plaintext follows.
            if free == 0 {
                self.seal(false, sink)?;
                continue;
            }
            let (now, rest) = text.split_at(free.min(text.len()));
            self.buffer.extend_from_slice(now);
            text = rest;
        }
        Ok(())
    }

    /// Seals the rest as the last segment.
    pub(crate) fn finish(mut self, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.seal(true, sink)
    }

    fn seal(&mut self, last: bool, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(header) = self.header.take() {
            sink(&header)?;
        }
        let too_long = || Error::InvalidMessage { reason: "it is too long for one seal" };
        let next = self.segment.checked_add(1).ok_or_else(too_long)?;
        let nonce = self.stream.nonce(self.segment, last);
        let tag = self.stream.cipher.seal(&nonce, &[], &mut self.buffer).ok_or_else(too_long)?;
        self.buffer.extend_from_slice(&tag);
        sink(&self.buffer)?;
        self.buffer.clear();
        self.segment = next;
        Ok(())
    }
}

/// Opens any segment of a sealed content.
pub(crate) struct StreamOpener {
    stream: Stream,
    sealed: u64,
}

impl StreamOpener {
    /// Reads the header of a content with this many sealed bytes; `None` if it is invalid.
    pub(crate) fn new(
        key: &SealingKey,
        associated: &AssociatedData<'_>,
        header: &[u8; HEADER],
        sealed: u64,
    ) -> Option<Self> {
        text_length(sealed)?;
        Some(Self { stream: stream(key, associated, header)?, sealed })
    }

    /// The segment that holds a plaintext position, and the position within it.
    pub(crate) fn find(at: u64) -> (u64, usize) {
        let first = room(0) as u64;
        let (segment, offset) = match at.checked_sub(first) {
            None => (0, at),
            Some(after) => (1 + after / room(1) as u64, after % room(1) as u64),
        };
        (segment, usize::try_from(offset).unwrap_or(0))
    }

    /// The position of a segment without the header: its first byte and its length.
    pub(crate) fn bounds(&self, segment: u64) -> (u64, usize) {
        let start = if segment == 0 { HEADER as u64 } else { segment * SEGMENT as u64 };
        let end = ((segment + 1) * SEGMENT as u64).min(self.sealed);
        (start, usize::try_from(end.saturating_sub(start)).unwrap_or(0))
    }

    /// Opens a whole content; `None` if any of it was not sealed here. The plaintext should have the capacity for all of
    /// it, since growing leaves unwiped copies.
    pub(crate) fn open_all(&self, sealed: &[u8], text: &mut Vec<u8>) -> Option<()> {
        let mut buffer = Zeroizing::new(Vec::with_capacity(SEGMENT.min(sealed.len())));
        for (number, segment) in sealed.chunks(SEGMENT).enumerate() {
            let skipped = if number == 0 { HEADER } else { 0 };
            buffer.clear();
            buffer.extend_from_slice(segment.get(skipped..)?);
            self.open(number as u64, &mut buffer)?;
            text.extend_from_slice(&buffer);
        }
        Some(())
    }

    /// Opens a segment in place; `None` if it was not sealed here.
    pub(crate) fn open(&self, segment: u64, bytes: &mut Vec<u8>) -> Option<()> {
        let last = (segment + 1) * SEGMENT as u64 >= self.sealed;
        let segment = u32::try_from(segment).ok()?;
        let (text, tag) = bytes.split_last_chunk_mut::<TAG>()?;
        let length = text.len();
        let is_open = self.stream.cipher.open(&self.stream.nonce(segment, last), &[], text, tag);
        bytes.truncate(length);
        is_open.then_some(())
    }
}

debug_shows!(StreamOpener: sealed);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{EncryptionKey, Kind};

    const ASSOCIATED: AssociatedData<'static> = AssociatedData {
        kind: Kind::Artifact,
        scope: &["dm", "42"],
        name: "00112233445566778899aabbccddeeff",
    };

    fn key() -> SealingKey {
        let key = EncryptionKey::from_secret("a secret of the house").unwrap();
        SealingKey::new(&key.unsalted(), &[1; 32])
    }

    fn sealed(text: &[u8], piece: usize) -> Vec<u8> {
        let mut sealed = Vec::new();
        let mut sink = |bytes: &[u8]| {
            sealed.extend_from_slice(bytes);
            Ok(())
        };
        let mut sealer = StreamSealer::new(&key(), &ASSOCIATED).unwrap();
        for piece in text.chunks(piece) {
            sealer.write(piece, &mut sink).unwrap();
        }
        sealer.finish(&mut sink).unwrap();
        sealed
    }

    fn opened(associated: &AssociatedData<'_>, sealed: &[u8]) -> Option<Vec<u8>> {
        let header = sealed.first_chunk()?;
        let opener = StreamOpener::new(&key(), associated, header, sealed.len() as u64)?;
        let mut text = Vec::new();
        let mut segment = 0;
        loop {
            let (start, length) = opener.bounds(segment);
            if length == 0 {
                break;
            }
            let start = usize::try_from(start).unwrap();
            let mut bytes = sealed[start..start + length].to_vec();
            opener.open(segment, &mut bytes)?;
            text.extend(bytes);
            segment += 1;
        }
        Some(text)
    }

    #[test]
    fn a_text_of_any_length_comes_back_however_it_was_cut() {
        let first = room(0);
        for length in
            [0, 1, first - 1, first, first + 1, first + room(1), first + room(1) + 1, 300_000]
        {
            let text: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            for piece in [1000, 65_536, usize::MAX] {
                let sealed = sealed(&text, piece);
                assert_eq!(text_length(sealed.len() as u64), Some(length as u64));
                assert_eq!(opened(&ASSOCIATED, &sealed), Some(text.clone()), "{length} by {piece}");
            }
        }
    }

    #[test]
    fn a_byte_is_found_where_its_segment_holds_it() {
        assert_eq!(StreamOpener::find(0), (0, 0));
        assert_eq!(StreamOpener::find(room(0) as u64 - 1), (0, room(0) - 1));
        assert_eq!(StreamOpener::find(room(0) as u64), (1, 0));
        assert_eq!(StreamOpener::find((room(0) + room(1)) as u64), (2, 0));
    }

    #[test]
    fn segments_that_are_cut_off_changed_or_swapped_do_not_open() {
        let text = vec![7; 3 * SEGMENT];
        let whole = sealed(&text, usize::MAX);
        for length in [0, 1, HEADER, HEADER + TAG - 1, SEGMENT, 2 * SEGMENT, whole.len() - 1] {
            assert_eq!(opened(&ASSOCIATED, &whole[..length]), None, "cut to {length}");
        }
        for at in [0, 1, 33, HEADER, SEGMENT, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!(opened(&ASSOCIATED, &changed), None, "byte {at}");
        }
        let mut swapped = whole.clone();
        swapped[SEGMENT..3 * SEGMENT].rotate_left(SEGMENT);
        assert_eq!(opened(&ASSOCIATED, &swapped), None);
        let longer = [whole.as_slice(), &whole[2 * SEGMENT..]].concat();
        assert_eq!(opened(&ASSOCIATED, &longer), None);
    }

    #[test]
    fn it_opens_in_no_other_place() {
        let whole = sealed(b"words", 5);
        for other in [
            AssociatedData { kind: Kind::ArtifactMeta, ..ASSOCIATED },
            AssociatedData { scope: &["dm", "43"], ..ASSOCIATED },
            AssociatedData { name: "ff112233445566778899aabbccddeeff", ..ASSOCIATED },
        ] {
            assert_eq!(opened(&other, &whole), None);
        }
        assert!(opened(&ASSOCIATED, &whole).is_some());
    }

    #[test]
    fn no_text_is_sealed_to_an_impossible_number_of_bytes() {
        for impossible in [0, 1, (HEADER + TAG - 1) as u64, SEGMENT as u64 + TAG as u64] {
            assert_eq!(text_length(impossible), None, "{impossible}");
        }
        assert_eq!(text_length((HEADER + TAG) as u64), Some(0));
    }
}
