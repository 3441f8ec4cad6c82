//! The contents of artifacts in pieces, as remotes and servers hold them

use std::fmt;
use std::io::{self, Read};

use sottovoce::store::ArtifactContents;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::error::{SyncError, SyncResult};

/// The bytes of a piece.
const PIECE: usize = 8 << 20;

/// The most pieces of an artifact: 64 GiB.
pub const MAX_PIECES: usize = 8192;

/// A piece that has arrived, or why it has not.
pub type Piece = io::Result<Zeroizing<Vec<u8>>>;

/// Reads the next piece of an artifact, on a thread that may block. An empty one is the end.
///
/// # Errors
/// [`SyncError::State`] if the artifact cannot be read.
pub async fn read_piece(
    mut contents: ArtifactContents,
) -> SyncResult<(Zeroizing<Vec<u8>>, ArtifactContents)> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut piece = Zeroizing::new(Vec::with_capacity(PIECE));
        let read = (&mut contents).take(PIECE as u64).read_to_end(&mut piece);
        read.map(|_| (piece, contents))
    });
    match reading.await {
        Ok(Ok(read)) => Ok(read),
        _ => Err(SyncError::State { reason: "an artifact cannot be read" }),
    }
}

/// Pieces as they arrive, as one text. It is to be read on a thread that may block.
pub struct PieceReader {
    receiver: mpsc::Receiver<Piece>,
    piece: Zeroizing<Vec<u8>>,
    at: usize,
}

impl PieceReader {
    /// A reader of what is sent. Reading ends when the sender is dropped, and fails with an error that is sent.
    pub fn new() -> (mpsc::Sender<Piece>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        (sender, Self { receiver, piece: Zeroizing::default(), at: 0 })
    }
}

impl fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceReader").finish_non_exhaustive()
    }
}

impl Read for PieceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.piece.len() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
            self.at = 0;
        }
        let rest = self.piece.get(self.at..).unwrap_or_default();
        let length = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..length), rest.get(..length)) {
            into.copy_from_slice(rest);
        }
        self.at += length;
        Ok(length)
    }
}
