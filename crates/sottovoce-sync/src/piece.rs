//! The contents of artifacts in pieces, as remotes and servers hold them

use std::io::{self, Read};

use sottovoce::Error as StoreError;
use sottovoce::exchange::Exchange;
use sottovoce::store::{Artifact, ArtifactContents, ArtifactStore};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::error::{SyncError, SyncResult};

/// The bytes of a piece.
const PIECE: usize = 8 << 20;

/// The most pieces of an artifact: 64 GiB.
pub(crate) const MAX_PIECES: usize = 8192;

/// The bytes of a piece.
pub type Piece = Zeroizing<Vec<u8>>;

/// Reads an artifact and hands over piece by piece. Returns what the pieces are called. `None` if the artifact was deleted
/// meanwhile.
///
/// # Errors
/// Those of opening the artifact and of `put`, and [`SyncError::State`] if the artifact cannot be read.
pub async fn send_pieces<
    I,
    E: From<StoreError> + From<SyncError>,
    F: Future<Output = Result<I, E>>,
>(
    exchange: &Exchange,
    id: &str,
    put: impl Fn(Piece) -> F,
) -> Result<Option<Vec<I>>, E> {
    let Some(mut contents) = exchange.store().open_artifact(id).await? else { return Ok(None) };
    let (mut pieces, mut left) = (Vec::new(), contents.artifact().size);
    loop {
        let room = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let (piece, rest) = read_piece(contents, room).await?;
        (contents, left) = (rest, left.saturating_sub(PIECE as u64));
        if piece.is_empty() {
            return Ok(Some(pieces));
        }
        pieces.push(put(piece).await?);
    }
}

/// Gets the pieces of an artifact and stores it. `false` if one of them is not there, or they are not its contents.
///
/// # Errors
/// Those of adding the artifact and of `get`.
pub async fn receive_pieces<
    I: Copy,
    E: From<StoreError>,
    F: Future<Output = Result<Option<Piece>, E>>,
>(
    exchange: &Exchange,
    artifact: &Artifact,
    pieces: &[I],
    get: impl Fn(I) -> F,
) -> Result<bool, E> {
    if pieces.len() > MAX_PIECES {
        return Ok(false);
    }
    let (sender, receiver) = mpsc::channel(1);
    let reader = PieceReader { receiver, piece: Zeroizing::default(), at: 0 };
    let adding = exchange.receive_artifact(artifact.clone(), reader);
    let sending = async move {
        for piece in pieces {
            let (piece, failed) = match get(*piece).await {
                Ok(piece) => (piece, Ok(())),
                Err(error) => (None, Err(error)),
            };
            let is_there = piece.is_some();
            let piece = piece.ok_or_else(|| io::Error::other("a piece is not there"));
            // The receiver is gone if the artifact is not wanted any more.
            if sender.send(piece).await.is_err() || !is_there {
                return failed;
            }
        }
        Ok(())
    };
    let (added, sent) = tokio::join!(adding, sending);
    sent?;
    match added {
        Ok(()) => Ok(true),
        Err(StoreError::Io { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads the next piece of an artifact, which is expected to need that much `room`, on a thread that may block. An empty one
/// is the end.
async fn read_piece(
    mut contents: ArtifactContents,
    room: usize,
) -> SyncResult<(Piece, ArtifactContents)> {
    let reading = tokio::task::spawn_blocking(move || {
        // All of it is wiped, the part that was not used too.
        let mut piece = Zeroizing::new(Vec::with_capacity(room));
        let read = (&mut contents).take(PIECE as u64).read_to_end(&mut piece);
        read.map(|_| (piece, contents))
    });
    match reading.await {
        Ok(Ok(read)) => Ok(read),
        _ => Err(SyncError::State { reason: "an artifact cannot be read" }),
    }
}

/// Pieces as they arrive, as one text. It is to be read on a thread that may block.
struct PieceReader {
    receiver: mpsc::Receiver<io::Result<Piece>>,
    piece: Piece,
    at: usize,
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
