//! `/forget last`: deletes the last exchange.

use std::ops::RangeInclusive;

use sottovoce::{ConversationStore, Error};

use crate::cmd::forgetting::forget::announce;
use crate::cmd::talk::chat::Chat;
use crate::exit::Failure;
use crate::output;

impl Chat {
    /// Deletes the last exchange permanently, after the user has confirmed everything that goes with it.
    pub(super) async fn forget(&mut self, sure: bool) -> Result<(), Failure> {
        // An answer that was just interrupted belongs to it.
        self.conversation.close().await?;
        let exchange = self.conversation.last_exchange().await?;
        if exchange.is_empty() {
            output::note("nothing is kept yet");
            return Ok(());
        }
        if !sure && !self.lines.is_terminal() {
            self.complain("this deletes permanently; in a pipe write /forget last yes");
            return Ok(());
        }
        let seqs: Vec<RangeInclusive<u64>> =
            exchange.iter().map(|stored| stored.seq..=stored.seq).collect();
        let forgotten = if sure {
            self.conversation.forget(&seqs).await?
        } else {
            loop {
                let plan = self.store.plan_forget(&seqs).await?;
                announce::show(&self.store, &plan).await?;
                let question = format!("Really {}? [y/N] ", announce::deed("", &plan));
                if !self.confirmed(&question).await? {
                    output::note("nothing was deleted");
                    return Ok(());
                }
                match self.conversation.forget_planned(&plan).await {
                    Err(Error::MoreThanAnnounced) => {
                        output::note("the conversation has changed meanwhile");
                    }
                    forgotten => break forgotten?,
                }
            }
        };
        announce::done(&forgotten);
        self.lines.forget();
        Ok(())
    }
}
