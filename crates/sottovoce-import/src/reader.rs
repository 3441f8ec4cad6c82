//! What all readers have in common.

use sottovoce::admin::Progress;
use sottovoce::{Error, Result};

/// A source of another program's conversations. It is opened read-only.
pub trait Reader: Sized + Send + 'static {
    /// What it reads: [`ImportedMessages`](sottovoce::import::ImportedMessages) of one conversation, or
    /// [`ImportedConversations`](sottovoce::import::ImportedConversations). All messages are in memory then.
    type Found: Send + 'static;

    /// Reads the whole source, calling `progress` as it goes. It blocks the thread.
    ///
    /// # Errors
    /// Only what keeps the source as a whole from being read: [`Error::Io`] where it is not there, or
    /// [`Error::NotImportable`] for a file that is none of the program's. What concerns one conversation, file or message
    /// is a [`Refusal`](sottovoce::import::Refusal) in what was read.
    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<Self::Found>;

    /// [`read_blocking`](Self::read_blocking) on a thread that may block. It reads on to the end when the future is
    /// dropped.
    ///
    /// # Errors
    /// Those of [`read_blocking`](Self::read_blocking).
    fn read(
        self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> impl Future<Output = Result<Self::Found>> + Send {
        blocking(move || self.read_blocking(&progress))
    }
}

/// Runs work to its end on a blocking thread, whether or not the caller still waits.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        // The host's `progress` panicked; the panic is the host's to see.
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
