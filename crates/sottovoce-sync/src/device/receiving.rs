//! The conversations into which messages arrive

use std::collections::VecDeque;

use sottovoce::exchange::Exchange;
use sottovoce::{FileConversationStore, Scope};

/// How many conversations are kept open. Each remembers which messages it has.
const OPEN: usize = 4;

/// The conversations into which something was received last.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    open: VecDeque<Exchange>,
}

impl Receiving {
    /// The conversation, if it is open.
    pub(super) fn find(&self, scope: &Scope) -> Option<Exchange> {
        let is_it = |exchange: &&Exchange| **exchange.store().scope() == *scope;
        self.open.iter().find(is_it).cloned()
    }

    /// Keeps a conversation open, in the place of the one that was opened first.
    pub(super) fn open(&mut self, store: FileConversationStore) -> Exchange {
        let exchange = Exchange::new(store);
        if self.open.len() >= OPEN {
            self.open.pop_front();
        }
        self.open.push_back(exchange.clone());
        exchange
    }

    /// Drops a conversation whose folder was removed.
    pub(super) fn drop(&mut self, scope: &Scope) {
        self.open.retain(|exchange| **exchange.store().scope() != *scope);
    }
}
