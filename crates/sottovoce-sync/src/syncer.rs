//! Syncs a store with the other devices of its space

use std::collections::BTreeMap;
use std::sync::Arc;

use sottovoce::exchange::{self, Position, Sharing, SyncLock};
use sottovoce::{Clock, FileConversationStore, Scope};
use zeroize::Zeroizing;

use crate::device::home::{Conversations, Home, system_random};
use crate::device::selection::Selection;
use crate::device::state::{Peer, State};
use crate::device::{Device, Thoroughness};
use crate::error::{SyncError, SyncResult};
use crate::id::Id;
use crate::report::{DeviceStatus, SyncProgress, SyncReport, SyncStatus};
use crate::space::Invitation;
use crate::stream::head::Point;
use crate::stream::objects::Objects;
use sottovoce_remote::Remote;

/// Opens the remote at an address, with the credentials that the host has.
pub type OpenRemote = Box<dyn Fn(&str) -> sottovoce_remote::Result<Arc<dyn Remote>> + Send + Sync>;

/// Syncs a store with the other devices of its space, as often as it is asked to.
///
/// Every operation reads and writes the state in the store, so several processes may have one; only one of them syncs
/// at a time.
pub struct Syncer {
    home: Home,
    remote: OpenRemote,
}

/// What a syncing store is called and what it shares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// The device's name, as other devices show it.
    pub name: String,
    /// Which conversations it shares.
    pub selection: Selection,
}

impl Syncer {
    /// A syncer of these conversations.
    pub fn new(
        conversations: Arc<dyn Conversations>,
        clock: Arc<dyn Clock>,
        remote: OpenRemote,
    ) -> Self {
        let random = Arc::new(system_random);
        Self { home: Home { conversations, clock, random }, remote }
    }

    /// Sets other random numbers than the system's, so that a test can be repeated.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_random(mut self, random: Arc<dyn Fn() -> Option<u128> + Send + Sync>) -> Self {
        self.home.random = random;
        self
    }

    /// Begins a space at a remote. Nothing is shared before the first [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`SyncError::SetUpAlready`] if the store syncs already. Those of the remote.
    pub async fn init(&self, address: &str, options: DeviceOptions) -> SyncResult<()> {
        let (root, _lock) = self.locked().await?;
        check_new(&root).await?;
        let invitation = self.new_space(address)?;
        // A wrong address or wrong credentials should show now.
        self.objects(&invitation)?.devices().await?;
        self.enter(&root, &invitation, options, None).await
    }

    /// Joins the space of an invitation. Nothing is shared before the first [`sync`](Self::sync). A store that syncs in
    /// another space must [`stop`](Self::stop) first, unless that was closed.
    ///
    /// # Errors
    /// [`SyncError::EmptySpace`] if no device has published there. [`SyncError::Closed`] if the invitation is from before a
    /// device was removed. [`SyncError::SetUpAlready`]. Those of the remote.
    pub async fn join(&self, invitation: &Invitation, options: DeviceOptions) -> SyncResult<()> {
        let (root, _lock) = self.locked().await?;
        let before = match State::read(&root).await? {
            Some(state) if state.closed => Some(state),
            Some(state) => return Err(SyncError::SetUpAlready { address: state.address }),
            None => None,
        };
        let objects = self.objects(invitation)?;
        let (devices, _) = objects.devices().await?;
        if devices.is_empty() {
            return Err(SyncError::EmptySpace { address: invitation.address.clone() });
        }
        if objects.are_closed(devices).await? {
            return Err(SyncError::Closed);
        }
        self.enter(&root, invitation, options, before).await
    }

    /// Receives what other devices have published, and publishes what is new here.
    ///
    /// # Errors
    /// [`SyncError::Busy`] if another process syncs. [`SyncError::Closed`] if the space was closed. Those of the store
    /// and the remote: sync again to continue.
    pub async fn sync(
        &self,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> SyncResult<SyncReport> {
        self.sync_with(Thoroughness::Full, progress).await
    }

    /// Syncs with fewer requests, to be repeated often: it looks for newer heads only, and tells others only now and then
    /// what was read here.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync).
    pub async fn poll(&self) -> SyncResult<SyncReport> {
        self.sync_with(Thoroughness::Poll, |_| {}).await
    }

    /// Reads everything again that others have published. What is here already stays as it is.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync).
    pub async fn sync_from_start(
        &self,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> SyncResult<SyncReport> {
        let (mut device, _lock) = self.device().await?;
        device.state.read_from_start();
        device.sync(Thoroughness::Full, &progress).await
    }

    /// Publishes again what this device has and no other: also what devices published that are gone. These are not reported
    /// as missing any more.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync).
    pub async fn mend(
        &self,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> SyncResult<SyncReport> {
        let (mut device, _lock) = self.device().await?;
        device.state.drop_missing();
        // Also into a space that is empty now.
        device.state.synced_at = None;
        device.begin_stream().await?;
        device.sync(Thoroughness::Full, &progress).await
    }

    /// The invitation for another device.
    ///
    /// # Errors
    /// [`SyncError::NotSetUp`].
    pub async fn invitation(&self) -> SyncResult<Invitation> {
        self.state().await?.1.invitation()
    }

    /// The address of the remote; `None` if the store does not sync.
    ///
    /// # Errors
    /// Those of reading the store.
    pub async fn address(&self) -> SyncResult<Option<String>> {
        let root = self.root().await?;
        Ok(State::read(&root).await?.map(|state| state.address))
    }

    /// The space as this device knows it. Asks no remote.
    ///
    /// # Errors
    /// [`SyncError::NotSetUp`], and those of reading the store.
    pub async fn status(&self) -> SyncResult<SyncStatus> {
        let (_, state) = self.state().await?;
        let mut unpublished = 0;
        for (scope, position) in self.home.positions(&state.selection).await? {
            let published = state.own.scopes.get(&scope.to_string());
            unpublished += usize::from(published.is_none_or(|known| known.position != position));
        }
        let mut peers: Vec<DeviceStatus> = state
            .peers
            .iter()
            .map(|(id, peer)| DeviceStatus {
                id: *id,
                name: peer.name.clone(),
                published_at: peer.at,
                unread: peer.last.saturating_sub(peer.read.0),
                behind: {
                    let seen = peer.seen.get(&state.device).copied().unwrap_or(0);
                    state.own.last.0.saturating_sub(seen)
                },
            })
            .collect();
        peers.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(SyncStatus {
            address: state.address,
            device: state.device,
            name: state.name,
            selection: state.selection,
            synced_at: state.synced_at,
            unpublished,
            peers,
            is_closed: state.closed,
        })
    }

    /// The time by the host's clock.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.home.now()
    }

    /// Where each shared conversation is. While that is equal, nothing has changed here.
    pub(crate) async fn positions(&self) -> SyncResult<BTreeMap<Scope, Position>> {
        let (_, state) = self.state().await?;
        self.home.positions(&state.selection).await
    }

    /// Gives this device another name. Others see it with the next publish.
    ///
    /// # Errors
    /// [`SyncError::NotSetUp`], [`SyncError::Busy`], and those of the store.
    pub async fn rename(&self, name: &str) -> SyncResult<()> {
        let (root, mut state, _lock) = self.state_to_change().await?;
        state.name = name.to_owned();
        state.own.is_to_tell = true;
        state.write(&root).await
    }

    /// Shares other conversations from now on. What was shared before stays where it is.
    ///
    /// # Errors
    /// [`SyncError::NotSetUp`], [`SyncError::Busy`], and those of the store.
    pub async fn select(&self, selection: Selection) -> SyncResult<()> {
        let (root, mut state, _lock) = self.state_to_change().await?;
        if state.selection != selection {
            let mut lasts = self.home.lasts(&selection).await?;
            let before = std::mem::replace(&mut state.selection, selection);
            if state.own.kept.is_empty() {
                // Nobody here may have what others said in them before, and published somewhere else.
                lasts.retain(|name, _| name.parse().is_ok_and(|scope| !before.includes(&scope)));
                state.begun.get_or_insert_default().extend(lasts);
                // What others said in conversations that were not shared was passed over.
                state.read_from_start();
            } else {
                // The streams that stay may go now.
                state.begin_stream(self.home.new_id()?, lasts);
            }
        }
        state.write(&root).await
    }

    /// Ends syncing of this store. It keeps everything; what it published stays at the remote.
    ///
    /// # Errors
    /// [`SyncError::NotSetUp`], [`SyncError::Busy`], and those of the store.
    pub async fn stop(&self) -> SyncResult<()> {
        let (root, _, _lock) = self.state_to_change().await?;
        Ok(exchange::write_state(&root, Sharing::Devices, b" ").await?)
    }

    /// Shuts a lost device out: closes the space, deletes what is at the remote, and publishes everything into a new
    /// space. The other devices have to join that with the new invitation. What the lost device has read, it keeps.
    ///
    /// # Errors
    /// [`SyncError::NoSuchDevice`], and those of [`sync`](Self::sync). If it was interrupted, the next sync continues.
    pub async fn remove_device(
        &self,
        name: &str,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> SyncResult<SyncReport> {
        let (mut device, lock) = self.device().await?;
        let is_known = |(id, peer): (&Id, &Peer)| peer.name == name || id.to_string() == name;
        if !device.state.peers.iter().any(is_known) {
            return Err(SyncError::NoSuchDevice { name: name.to_owned() });
        }
        // What the others have published is to be in the new space.
        device.sync(Thoroughness::Full, &progress).await?;
        let invitation = self.new_space(&device.state.address)?;
        let options = DeviceOptions {
            name: device.state.name.clone(),
            selection: device.state.selection.clone(),
        };
        let (root, before) = (device.root.clone(), device.state);
        self.enter(&root, &invitation, options, Some(before)).await?;
        let state = State::read(&root).await?.ok_or(SyncError::NotSetUp)?;
        let objects = self.objects(&invitation)?;
        let mut device = Device::new(self.home.clone(), root, objects, state);
        let report = device.sync(Thoroughness::Full, &progress).await?;
        self.leave(&mut device).await?;
        drop(lock);
        Ok(report)
    }

    async fn sync_with(
        &self,
        thoroughness: Thoroughness,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> SyncResult<SyncReport> {
        let (mut device, _lock) = self.device().await?;
        let report = device.sync(thoroughness, &progress).await?;
        if device.state.left.is_some() {
            self.leave(&mut device).await?;
        }
        Ok(report)
    }

    /// Closes the space that this device left, and deletes what is there.
    async fn leave(&self, device: &mut Device) -> SyncResult<()> {
        let Some(left) = device.state.left.clone() else { return Ok(()) };
        let objects = self.objects(&left.invitation()?)?;
        let mut devices = objects.devices().await?.0;
        devices.retain(|device| *device != left.device);
        if objects.are_closed(devices.clone()).await? {
            // Another device has shut one out since: the space that follows is that one's.
            device.objects.delete_heads(device.state.device).await?;
            device.objects.delete_objects(device.state.device).await?;
            device.state = *left;
            device.state.closed = true;
            device.save().await?;
            return Err(SyncError::Closed);
        }
        let now = self.home.now();
        let mut head = left.own.head(&left.name, now);
        head.closed = true;
        head.segments.clear();
        head.last = Point::START;
        // Both slots, so that no older head is found.
        for _ in 0..2 {
            head.n += 1;
            head.token = self.home.new_id()?;
            objects.put_head(left.device, &head).await?;
        }
        devices.extend(left.known_devices());
        for other in devices {
            objects.delete_objects(other).await?;
            objects.delete_heads(other).await?;
        }
        objects.delete_objects(left.device).await?;
        device.state.left = None;
        device.save().await
    }

    fn new_space(&self, address: &str) -> SyncResult<Invitation> {
        let mut key = Zeroizing::new([0; 32]);
        for half in key.chunks_exact_mut(16) {
            half.copy_from_slice(&self.home.new_id()?.to_bytes());
        }
        Ok(Invitation { space: self.home.new_id()?, key, address: address.to_owned() })
    }

    /// Writes the state of a device that has published nothing in a space yet.
    async fn enter(
        &self,
        root: &FileConversationStore,
        invitation: &Invitation,
        options: DeviceOptions,
        before: Option<State>,
    ) -> SyncResult<()> {
        let DeviceOptions { name, selection } = options;
        let lasts = self.home.lasts(&selection).await?;
        let device = self.home.new_id()?;
        let mut state = State::new(invitation, device, name, selection);
        if let Some(before) = before {
            state.registers.clone_from(&before.registers);
            // What has not arrived is not deleted because of that.
            state.wanted.clone_from(&before.wanted);
            state.waiting.clone_from(&before.waiting);
            state.stamp = before.stamp;
            state.left = (!before.closed).then(|| Box::new(before));
        }
        state.begin_stream(device, lasts);
        state.write(root).await
    }

    fn objects(&self, invitation: &Invitation) -> SyncResult<Objects> {
        let remote = (self.remote)(&invitation.address)?;
        Objects::new(remote, invitation.space, &invitation.key)
    }

    async fn root(&self) -> SyncResult<FileConversationStore> {
        Ok(self.home.conversations.open(&Scope::Default).await?)
    }

    async fn locked(&self) -> SyncResult<(FileConversationStore, SyncLock)> {
        let root = self.root().await?;
        let lock = exchange::try_lock(&root, Sharing::Devices).await?.ok_or(SyncError::Busy)?;
        Ok((root, lock))
    }

    async fn state(&self) -> SyncResult<(FileConversationStore, State)> {
        let root = self.root().await?;
        let state = State::read(&root).await?.ok_or(SyncError::NotSetUp)?;
        Ok((root, state))
    }

    async fn state_to_change(&self) -> SyncResult<(FileConversationStore, State, SyncLock)> {
        let (root, lock) = self.locked().await?;
        let state = State::read(&root).await?.ok_or(SyncError::NotSetUp)?;
        Ok((root, state, lock))
    }

    async fn device(&self) -> SyncResult<(Device, SyncLock)> {
        let (root, state, lock) = self.state_to_change().await?;
        let objects = self.objects(&state.invitation()?);
        let objects = objects.map_err(|error| state.absent_if_gone(error))?;
        Ok((Device::new(self.home.clone(), root, objects, state), lock))
    }
}

/// Refuses a store that syncs already.
async fn check_new(root: &FileConversationStore) -> SyncResult<()> {
    match State::read(root).await? {
        Some(state) => Err(SyncError::SetUpAlready { address: state.address }),
        None => Ok(()),
    }
}

sottovoce::debug_shows!(Syncer: home);
