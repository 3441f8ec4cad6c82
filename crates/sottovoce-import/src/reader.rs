//! The trait of all readers.

use sottovoce::admin::Progress;
use sottovoce::{Error, Result};

/// A source of another program's conversations. It is only read, never changed.
pub trait Reader: Sized + Send + 'static {
    /// The result: [`ImportedMessages`](sottovoce::import::ImportedMessages) of one conversation, or
    /// [`ImportedConversations`](sottovoce::import::ImportedConversations). It holds all messages in memory.
    type Output: Send + 'static;

    /// Reads the whole source, calling `progress` on the way. Blocks the thread.
    ///
    /// # Errors
    /// Only errors that concern the whole source: [`Error::Io`] if it does not exist, or [`Error::NotImportable`] for
    /// a file that the program did not write. A problem with one conversation, file or message is a
    /// [`Refusal`](sottovoce::import::Refusal) in the result.
    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<Self::Output>;

    /// [`read_blocking`](Self::read_blocking) on a thread that may block. Continues to the end if the future is
    /// dropped.
    ///
    /// # Errors
    /// Those of [`read_blocking`](Self::read_blocking).
    fn read(
        self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> impl Future<Output = Result<Self::Output>> + Send {
        blocking(move || self.read_blocking(&progress))
    }
}

/// Runs work to its end on a blocking thread, even if the caller no longer waits.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        // The host's `progress` panicked. The panic belongs to the host.
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(Error::ShuttingDown),
    }
}

/// Reads each item, calling `progress` before each and after the last.
pub(crate) fn each<T, E>(
    items: &[T],
    progress: &dyn Fn(Progress),
    mut read: impl FnMut(&T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let total = items.len();
    for (done, item) in items.iter().enumerate() {
        progress(Progress { done, total });
        read(item)?;
    }
    progress(Progress { done: total, total });
    Ok(())
}
