//! The store that a device shares, as syncing sees it

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use sottovoce::exchange::{Exchange, Position};
use sottovoce::{Clock, FileConversationStore, Result, Scope};

use crate::device::selection::Selection;
use crate::error::{SyncError, SyncResult};
use crate::id::Id;

/// Opens the conversations of a store.
#[async_trait]
pub trait Conversations: fmt::Debug + Send + Sync {
    /// The conversations that were ever written to.
    ///
    /// # Errors
    /// What prevents reading the store.
    async fn scopes(&self) -> Result<Vec<Scope>>;

    /// Opens a conversation. It need not exist. Return clones of a store that stays open: it remembers which messages it has, and
    /// another would read all of them before it takes what arrives.
    ///
    /// # Errors
    /// Those of opening a store.
    async fn open(&self, scope: &Scope) -> Result<FileConversationStore>;
}

/// A store's conversations, its clock, and a source of random numbers.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) conversations: Arc<dyn Conversations>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Fn() -> Option<u128> + Send + Sync>,
}

impl Home {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().timestamp()
    }

    /// Where each of the selected conversations is.
    pub(crate) async fn positions(
        &self,
        selection: &Selection,
    ) -> SyncResult<BTreeMap<Scope, Position>> {
        let mut positions = BTreeMap::new();
        for scope in self.conversations.scopes().await? {
            if selection.includes(&scope) {
                let store = self.conversations.open(&scope).await?;
                positions.insert(scope, Exchange::new(store).position().await?);
            }
        }
        Ok(positions)
    }

    /// The last number of each of the selected conversations, by the text of its scope.
    pub(crate) async fn lasts(&self, selection: &Selection) -> SyncResult<BTreeMap<String, u64>> {
        let positions = self.positions(selection).await?.into_iter();
        Ok(positions.map(|(scope, position)| (scope.to_string(), position.last_seq)).collect())
    }

    /// A new identifier.
    pub(crate) fn new_id(&self) -> SyncResult<Id> {
        (self.random)().map(Id::new).ok_or(SyncError::NoRandom)
    }
}

/// The system's random numbers.
pub(crate) fn system_random() -> Option<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(u128::from_be_bytes(bytes))
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").field("conversations", &self.conversations).finish_non_exhaustive()
    }
}
