//! Waiting for changes: of a conversation, or of anything in an organisation
//!
//! What this process appends is announced at once. What other processes append is found by one statement for everything that is
//! waited for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use sottovoce_net::lock;
use tokio::sync::watch;

use crate::api::Id;
use crate::team::Team;

/// The most identifiers of one statement.
const AT_ONCE: usize = 5_000;

/// What is waited for. The value of a conversation is its last position, if that is known.
#[derive(Debug)]
pub(super) struct Watch {
    marks: Mutex<HashMap<Id, watch::Sender<Option<i64>>>>,
    look: Duration,
}

impl Watch {
    pub(super) fn new(look: Duration) -> Self {
        Self { marks: Mutex::default(), look }
    }

    /// Follows something from now on.
    pub(super) fn subscribe(&self, id: Id) -> watch::Receiver<Option<i64>> {
        lock(&self.marks).entry(id).or_insert_with(|| watch::Sender::new(None)).subscribe()
    }

    /// Tells those who wait that something has this mark now. `None` has them look.
    pub(super) fn announce(&self, id: Id, mark: Option<i64>) {
        if let Some(sender) = lock(&self.marks).get(&id) {
            sender.send_if_modified(|known| {
                let is_new = mark.is_none() || *known != mark;
                *known = mark;
                is_new
            });
        }
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.marks).values().map(watch::Sender::receiver_count).sum()
    }

    /// Looks for what other processes append. Does not return.
    pub(super) async fn follow(&self, team: &Team) {
        loop {
            tokio::time::sleep(self.look).await;
            let ids: Vec<Id> = {
                let mut marks = lock(&self.marks);
                marks.retain(|_, sender| sender.receiver_count() > 0);
                marks.keys().copied().collect()
            };
            for some in ids.chunks(AT_ONCE) {
                match team.marks(some.to_vec()).await {
                    Ok(marks) => {
                        for (id, mark) in marks {
                            self.announce(id, Some(mark));
                        }
                    }
                    Err(error) => {
                        tracing::debug!(%error, "it is not known what other processes appended")
                    }
                }
            }
        }
    }
}
