//! Giving messages their meanings for recall, with a progress bar.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sottovoce::ConversationStore;
use sottovoce::context::recall::{Recall, Understood};

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::output;

/// How many messages get their meanings before the progress bar moves, and before they are saved.
const AT_ONCE: usize = 16;
const SAVED_AFTER: usize = 1024;
/// How long a command works on the meanings when it has shown its result.
const SHORTLY: Duration = Duration::from_millis(300);

/// What is kept when somebody stops it.
const KEPT: &str = "what was understood is kept; `sottovoce recall --understand` goes on with it, and so does a server";

/// Gives all messages of a conversation their meanings.
pub(crate) async fn all(store: Arc<dyn ConversationStore>) -> Result<Understood, Failure> {
    let recall = Recall::new(store);
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(Some(0), "understanding");
    let work = async {
        let Understood { known, all, .. } = recall.understood().await?;
        bar.set_length((all - known) as u64);
        let mut unsaved = 0;
        loop {
            let understood = recall.understand(AT_ONCE).await?;
            bar.inc(understood as u64);
            unsaved += understood;
            if understood == 0 || unsaved >= SAVED_AFTER {
                recall.save().await?;
                unsaved = 0;
            }
            if understood == 0 {
                return recall.understood().await;
            }
        }
    };
    let understood = match interrupt.or(KEPT, work).await {
        Ok(understood) => understood?,
        Err(failure) => {
            recall.save().await?;
            return Err(failure);
        }
    };
    bar.finish_and_clear();
    Ok(understood)
}

/// Runs [`all`] if standard error is a terminal. Elsewhere it is left to servers and to `recall`. The import is done, so a
/// failure is a warning.
pub(crate) async fn after_import(store: Arc<dyn ConversationStore>) {
    if stderr().is_terminal()
        && let Err(failure) = all(store).await
    {
        failure.report();
    }
}

/// Works on what is missing for a moment, and keeps it and the conversation's index for the next question.
pub(crate) async fn go_on(recall: &Recall) {
    let begun = Instant::now();
    let work = async {
        while begun.elapsed() < SHORTLY && recall.understand(1).await? > 0 {}
        recall.save().await
    };
    warn(work.await);
}

/// Keeps what was worked out of a conversation's index for the next question.
pub(crate) async fn keep(recall: &Recall) {
    warn(recall.save().await);
}

fn warn(saved: sottovoce::Result<()>) {
    if let Err(error) = saved {
        output::warning(&format!("the index could not be kept: {error}"));
    }
}

/// How many messages are understood, in words, and what that means for the others.
pub(crate) fn words(Understood { known, all, .. }: Understood) -> String {
    let others = if known < all { "; the others are found by their words alone" } else { "" };
    format!("understood: {known} of {}{others}", output::messages(all))
}
