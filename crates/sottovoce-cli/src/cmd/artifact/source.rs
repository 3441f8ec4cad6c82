//! Reads an artifact's contents with limits, and stops on a signal.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use indicatif::ProgressBar;
use zeroize::Zeroizing;

/// The bytes of one read from a slow source, and the number of such pieces that may be queued.
const PIECE: usize = 1 << 16;
const AHEAD: usize = 2;
/// How often a waiting reader checks for a signal.
const PAUSE: Duration = Duration::from_millis(50);

/// Why reading ended early.
#[derive(Debug, Default)]
pub(super) struct Watch {
    stopped: AtomicBool,
    over: AtomicBool,
}

impl Watch {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the source exceeded the limit.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// A reader that enforces a limit and moves a progress bar.
pub(super) struct Guarded<R> {
    inner: R,
    left: u64,
    bar: ProgressBar,
    watch: Arc<Watch>,
}

impl<R> Guarded<R> {
    pub(super) fn new(inner: R, limit: u64, bar: &ProgressBar, watch: &Arc<Watch>) -> Self {
        Self { inner, left: limit, bar: bar.clone(), watch: Arc::clone(watch) }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_stopped() {
            return Err(io::Error::other("it was stopped"));
        }
        let read = self.inner.read(into)?;
        let Some(left) = self.left.checked_sub(read as u64) else {
            self.watch.over.store(true, Ordering::Relaxed);
            return Err(io::Error::other("it is over the limit"));
        };
        self.left = left;
        self.bar.inc(read as u64);
        Ok(read)
    }
}

/// A source that may block, such as a pipe. It is read on its own thread, so that waiting can be stopped.
pub(super) struct Pump {
    pieces: Receiver<io::Result<Zeroizing<Vec<u8>>>>,
    piece: Zeroizing<Vec<u8>>,
    given: usize,
    watch: Arc<Watch>,
}

impl Pump {
    pub(super) fn new(
        open: impl FnOnce() -> io::Result<File> + Send + 'static,
        watch: &Arc<Watch>,
    ) -> Self {
        let (send, pieces) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            let mut file = match open() {
                Ok(file) => file,
                Err(error) => return drop(send.send(Err(error))),
            };
            loop {
                let mut piece = Zeroizing::new(vec![0; PIECE]);
                let read = match file.read(&mut piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let is_last = !matches!(read, Ok(1..));
                let piece = read.map(|read| {
                    piece.truncate(read);
                    piece
                });
                if send.send(piece).is_err() || is_last {
                    return;
                }
            }
        });
        Self { pieces, piece: Zeroizing::default(), given: 0, watch: Arc::clone(watch) }
    }
}

impl Read for Pump {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given >= self.piece.len() {
            match self.pieces.recv_timeout(PAUSE) {
                Ok(piece) => {
                    (self.piece, self.given) = (piece?, 0);
                    if self.piece.is_empty() {
                        return Ok(0);
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.watch.is_stopped() => {
                    return Err(io::Error::other("it was stopped"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let read = self.piece.get(self.given..).unwrap_or_default().read(into)?;
        self.given += read;
        Ok(read)
    }
}

/// A text that is wiped after it was read.
pub(super) struct Wiped(pub(super) Zeroizing<String>);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_is_given_and_whoever_reads_learns_why() {
        let bar = ProgressBar::hidden();
        for (limit, is_over) in [(9, true), (10, false), (11, false)] {
            let watch = Arc::new(Watch::default());
            let mut text = Vec::new();
            let read = Guarded::new(&b"0123456789"[..], limit, &bar, &watch).read_to_end(&mut text);
            assert_eq!((read.is_err(), watch.is_over()), (is_over, is_over), "{limit}");
        }
    }

    #[test]
    fn a_pipe_in_which_nothing_comes_can_be_left() {
        let (reader, _writer) = io::pipe().unwrap();
        let watch = Arc::new(Watch::default());
        let mut pump =
            Pump::new(move || Ok(File::from(std::os::fd::OwnedFd::from(reader))), &watch);
        watch.stop();
        assert!(pump.read(&mut [0; 8]).is_err());
    }

    #[test]
    fn a_pump_gives_what_its_file_holds() {
        let mut file = tempfile::tempfile().unwrap();
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        io::Write::write_all(&mut file, &text).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let mut read = Vec::new();
        Pump::new(move || Ok(file), &Arc::default()).read_to_end(&mut read).unwrap();
        assert!(read == text);
    }
}
