//! This device: what it shares, what it has published, and what it has read of others

mod apply;
mod collect;
mod compare;
pub(crate) mod home;
mod origins;
mod pieces;
mod publish;
mod receive;
mod registers;
mod rewrite;
mod round;
pub(crate) mod selection;
pub(crate) mod state;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sottovoce::exchange::{Exchange, Origin};
use sottovoce::{FileConversationStore, Scope};

use crate::device::home::Home;
use crate::device::state::State;
use crate::error::{SyncError, SyncResult};
use crate::id::Id;
use crate::report::{SyncProgress, SyncReport};
use crate::stream::head::Head;
use crate::stream::objects::Objects;

/// How often a sync begins anew because the remote's state of the own stream was another than expected.
const ATTEMPTS: usize = 4;

/// After what time a device that has other messages than another mends that again by itself. Something may keep them
/// different.
const MEND_AGAIN: SignedDuration = SignedDuration::from_hours(24);

/// One store at work on its space.
pub(crate) struct Device {
    pub(crate) home: Home,
    pub(crate) root: FileConversationStore,
    pub(crate) objects: Arc<Objects>,
    pub(crate) state: State,
    /// While this stream has not begun: the messages that other streams have, and those of the streams that this one
    /// takes the place of.
    heard: Heard,
    inherited: Heard,
    has_heard: bool,
    /// The heads that this sync has read.
    heads: BTreeMap<Id, Head>,
}

/// Messages of each conversation.
type Heard = HashMap<Scope, HashSet<Origin>>;

/// How a sync is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    /// Asks for what is new.
    Poll,
    /// Also looks whether others' streams went back, checks the own one, and tells others what was read.
    Full,
}

impl Device {
    pub(crate) fn new(
        home: Home,
        root: FileConversationStore,
        objects: Objects,
        state: State,
    ) -> Self {
        let (heard, inherited, heads) = (Heard::new(), Heard::new(), BTreeMap::new());
        let objects = Arc::new(objects);
        Self { home, root, objects, state, heard, inherited, has_heard: false, heads }
    }

    /// Receives what is new, and publishes what is new here.
    ///
    /// The future is in a box, so that this crate compiles what it does, and not each program that syncs.
    pub(crate) fn sync<'a>(
        &'a mut self,
        thoroughness: Thoroughness,
        progress: &'a (dyn Fn(SyncProgress) + Send + Sync),
    ) -> Pin<Box<dyn Future<Output = SyncResult<SyncReport>> + Send + 'a>> {
        Box::pin(self.sync_here(thoroughness, progress))
    }

    async fn sync_here(
        &mut self,
        thoroughness: Thoroughness,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<SyncReport> {
        if self.state.closed {
            return Err(SyncError::Closed);
        }
        let mut report = SyncReport::default();
        // A write that was interrupted is completed before anything is learnt: its journal does not know of that.
        let is_interrupted = self.state.pending.is_some();
        if is_interrupted && !self.reconcile().await? || self.is_restored().await? {
            report.began_again = true;
            self.begin_stream().await?;
        }
        for _ in 0..ATTEMPTS {
            self.receive(thoroughness, &mut report, progress).await?;
            if !self.has_heard {
                report.began_again = true;
                continue;
            }
            // A stream that another takes the place of is read by nobody.
            let is_read = !self.state.is_replaced(self.state.device);
            if is_read && self.publish(thoroughness, &mut report, progress).await? {
                let differing = self.compare(&mut report);
                let now = self.home.now();
                self.state.synced_at = Some(now);
                let is_mended = |at: Timestamp| now.duration_since(at).abs() < MEND_AGAIN;
                // Of two, one begins: if both left their streams at once, nobody would publish what stood in both.
                let is_due = !differing.is_empty() && !self.state.mended_at.is_some_and(is_mended);
                let is_first = differing.iter().any(|other| self.state.device < *other);
                let mends = is_due && (is_first || self.state.has_waited);
                self.state.has_waited = is_due && !mends;
                if mends {
                    self.state.mended_at = Some(now);
                    self.begin_stream().await?;
                }
                self.save().await?;
                return Ok(report.without_repetitions());
            }
            report.began_again = true;
            self.begin_stream().await?;
        }
        Err(SyncError::Contested)
    }

    pub(crate) async fn save(&self) -> SyncResult<()> {
        self.state.write(&self.root).await
    }

    /// Leaves the stream for a new one: the remote, this store or another copy of it is not in the state that this
    /// device left it in.
    pub(crate) async fn begin_stream(&mut self) -> SyncResult<()> {
        let lasts = self.home.lasts(&self.state.selection).await?;
        let device = self.home.new_id()?;
        self.state.begin_stream(device, lasts);
        self.heard.clear();
        self.inherited.clear();
        self.has_heard = false;
        self.save().await
    }

    /// The conversations of this store that are shared.
    async fn shared_scopes(&self) -> SyncResult<Vec<Scope>> {
        let mut scopes = self.home.conversations.scopes().await?;
        scopes.retain(|scope| self.state.selection.includes(scope));
        Ok(scopes)
    }

    async fn exchange(&self, scope: &Scope) -> SyncResult<Exchange> {
        Ok(Exchange::new(self.home.conversations.open(scope).await?))
    }

    /// Whether a conversation was restored from an older copy since it was published.
    async fn is_restored(&self) -> SyncResult<bool> {
        let scopes: HashSet<Scope> = self.home.conversations.scopes().await?.into_iter().collect();
        for (text, published) in &self.state.own.scopes {
            let Ok(scope) = text.parse::<Scope>() else { continue };
            if published.seq == 0 || !self.state.selection.includes(&scope) {
                continue;
            }
            if !scopes.contains(&scope) {
                if self.removed_at(&scope).await?.is_none() {
                    return Ok(true);
                }
                continue;
            }
            let exchange = self.exchange(&scope).await?;
            let position = exchange.position().await?;
            if position == published.position {
                continue;
            }
            if position.last_seq < published.seq {
                // A conversation that was forgotten and begun again counts from the start.
                return Ok(true);
            }
            if published.origin.is_none() {
                continue;
            }
            let now = exchange.message_origin(published.seq).await?;
            let is_gone = now.is_none() && !exchange.has_forgotten_number(published.seq).await?;
            if is_gone || now.is_some() && now != published.origin {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn removed_at(&self, scope: &Scope) -> SyncResult<Option<u64>> {
        Ok(Exchange::new(self.root.clone()).removed_at(scope).await?)
    }

    fn new_id(&self) -> SyncResult<Id> {
        self.home.new_id()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("state", &self.state).finish_non_exhaustive()
    }
}
