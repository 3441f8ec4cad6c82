//! What a device remembers about syncing. It is sealed in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sottovoce::exchange::{Origin, Position, SharedSnapshot, Sharing};
use sottovoce::{FileConversationStore, Scope};
use zeroize::Zeroizing;

use crate::device::origins::Origins;
use crate::device::selection::Selection;
use crate::error::{Failure as _, SyncError, SyncResult};
use crate::id::Id;
use crate::shared_state::{read_state, write_state};
use crate::space::Invitation;
use crate::stream::change::Contents;
use crate::stream::head::{Digest, Head, Point, SegmentRef, VERSION};
use crate::stream::segment::Segment;
use sottovoce_remote::ErrorKind;

/// The state.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct State {
    v: u64,
    pub(crate) address: String,
    pub(crate) space: Id,
    key: Secret,
    pub(crate) device: Id,
    pub(crate) name: String,
    pub(crate) selection: Selection,
    /// The stream as this device last wrote it, and as it was about to write it when it was interrupted.
    pub(crate) own: Own,
    pub(crate) pending: Option<Box<Own>>,
    /// Set while this stream has published nothing yet: the last number of each conversation when it began. Of the
    /// messages up to these, it publishes those that no other stream has.
    /// Messages of conversations that were selected later are looked at in the same way.
    pub(crate) begun: Option<BTreeMap<String, u64>>,
    pub(crate) peers: BTreeMap<Id, Peer>,
    /// The settings, snapshots and artifacts of each conversation.
    pub(crate) registers: BTreeMap<String, BTreeMap<String, Known>>,
    /// Artifacts whose contents were not at the remote, and how often their conversation had been forgotten then.
    #[serde(default)]
    pub(crate) wanted: BTreeMap<String, BTreeMap<String, (Contents, u64)>>,
    /// Snapshots whose messages have not arrived yet.
    #[serde(default)]
    pub(crate) waiting: BTreeMap<String, BTreeMap<String, SharedSnapshot>>,
    /// The highest stamp that any device has used, as far as is known here.
    pub(crate) stamp: u64,
    /// When this device last received everything and published everything.
    pub(crate) synced_at: Option<Timestamp>,
    /// When this device last began a new stream because another one had other messages.
    #[serde(default)]
    pub(crate) mended_at: Option<Timestamp>,
    /// Whether this device has let another one mend that first.
    #[serde(default)]
    pub(crate) has_waited: bool,
    /// Whether another device closed the space.
    #[serde(default)]
    pub(crate) closed: bool,
    /// The space that this device left and has not closed yet.
    #[serde(default)]
    pub(crate) left: Option<Box<State>>,
}

/// A key in base64.
#[derive(Clone)]
struct Secret(Zeroizing<String>);

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self(Zeroizing::new(text)))
    }
}

/// This device's stream.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Own {
    /// The number of the head; 0 before the first.
    pub(crate) n: u64,
    pub(crate) token: Id,
    pub(crate) last: Point,
    pub(crate) segments: Vec<OwnSegment>,
    /// The last segment, while it is short enough to be written again with what follows.
    pub(crate) tail: Option<Segment>,
    /// Objects that only the head before this one lists.
    pub(crate) superseded: Vec<Id>,
    /// Streams that this one takes the place of.
    pub(crate) replaces: BTreeSet<Id>,
    /// Streams of this device that stay, because they have conversations that it shares no more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) kept: BTreeSet<Id>,
    pub(crate) scopes: BTreeMap<String, Published>,
    pub(crate) seen: BTreeMap<Id, u64>,
    /// The objects with the contents of each artifact that this device published.
    pub(crate) pieces: BTreeMap<String, Vec<Id>>,
    /// When the head was written.
    pub(crate) at: Option<Timestamp>,
    /// Whether the head is to be written again, though nothing was published.
    #[serde(default)]
    pub(crate) is_to_tell: bool,
}

/// A segment of this device, and which messages it has, to find those that are forgotten.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnSegment {
    pub(crate) listed: SegmentRef,
    pub(crate) scopes: Coverage,
}

/// What a segment has of a conversation: the lowest and highest number of its messages here, and whether it has
/// settings.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Covered {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seqs: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) set: bool,
}

/// What was published of a conversation.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Where the conversation was when everything of it was published.
    pub(crate) position: Position,
    /// The last number that was looked at, and the identity of its message, if it had one.
    pub(crate) seq: u64,
    pub(crate) origin: Option<Origin>,
    /// What the conversation has.
    #[serde(default)]
    pub(crate) has: Has,
    pub(crate) gone: Origins,
    /// The numbers of the messages that were forgotten here.
    pub(crate) erased: Vec<(u64, u64)>,
    /// The stamps of the published settings.
    pub(crate) stamps: BTreeMap<String, u64>,
    /// One more than the highest number of the conversation when it was last forgotten completely: as the streams tell,
    /// and as this device's segments are without it.
    #[serde(default)]
    pub(crate) removed: u64,
    #[serde(default)]
    pub(crate) scrubbed: u64,
}

/// How many messages a conversation has, and the sum of the first halves of their identities: the same on all devices that
/// have the same messages, in whatever order they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Has {
    /// The number up to which messages were counted.
    pub(crate) upto: u64,
    pub(crate) digest: Digest,
    /// Whether limits here may have removed what other devices keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_limited: bool,
}

impl Has {
    /// Counts a message, unless it was counted before.
    pub(crate) fn add(&mut self, seq: u64, origin: Origin) {
        if seq > self.upto {
            self.digest.0 += 1;
            self.digest.1 =
                self.digest.1.wrapping_add((u128::from_be_bytes(origin.to_bytes()) >> 64) as u64);
        }
    }
}

/// A register as this device knows it.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    pub(crate) stamp: u64,
    /// The digest of its value.
    pub(crate) digest: String,
    /// Whether this device gave it that value and so has to publish it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) own: bool,
}

/// Another device.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    /// The number of its newest head.
    pub(crate) n: u64,
    /// Its last publish that was applied here.
    pub(crate) read: Point,
    /// Its last publish.
    pub(crate) last: u64,
    pub(crate) name: String,
    pub(crate) at: Option<Timestamp>,
    /// What it has read of this device, and of others beyond what is known of them here.
    pub(crate) seen: BTreeMap<Id, u64>,
    #[serde(default)]
    pub(crate) replaces: BTreeSet<Id>,
    /// Whether its head was gone from the remote when it was last looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_missing: bool,
}

impl State {
    pub(crate) fn new(
        invitation: &Invitation,
        device: Id,
        name: String,
        selection: Selection,
    ) -> Self {
        Self {
            v: VERSION,
            address: invitation.address.clone(),
            space: invitation.space,
            key: Secret(Zeroizing::new(BASE64.encode(invitation.key.as_slice()))),
            device,
            name,
            selection,
            own: Own::default(),
            pending: None,
            begun: Some(BTreeMap::new()),
            peers: BTreeMap::new(),
            registers: BTreeMap::new(),
            wanted: BTreeMap::new(),
            waiting: BTreeMap::new(),
            stamp: 0,
            synced_at: None,
            mended_at: None,
            has_waited: false,
            closed: false,
            left: None,
        }
    }

    /// Reads the state from the default conversation. `None` if the store does not sync.
    pub(crate) async fn read(root: &FileConversationStore) -> SyncResult<Option<Self>> {
        read_state(root, Sharing::Devices, (VERSION, |state: &Self| state.v)).await
    }

    pub(crate) async fn write(&self, root: &FileConversationStore) -> SyncResult<()> {
        write_state(root, Sharing::Devices, self).await
    }

    fn key(&self) -> SyncResult<Zeroizing<[u8; 32]>> {
        let bytes = BASE64.decode(self.key.0.as_bytes()).map(Zeroizing::new).ok();
        let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok());
        key.map(Zeroizing::new).ok_or(SyncError::State { reason: "its key has another length" })
    }

    pub(crate) fn invitation(&self) -> SyncResult<Invitation> {
        let address = self.address.clone();
        Ok(Invitation { space: self.space, key: self.key()?, address })
    }

    /// Leaves this device's stream for a new one, and reads all others from their start. `lasts` are the last numbers
    /// of the conversations now.
    pub(crate) fn begin_stream(&mut self, device: Id, lasts: BTreeMap<String, u64>) {
        let left = std::mem::replace(&mut self.device, device);
        let mut replaces = std::mem::take(&mut self.own.replaces);
        replaces.append(&mut self.own.kept);
        if left != device {
            self.peers.entry(left).or_default();
            replaces.insert(left);
        }
        // Whether conversations were forgotten completely is looked up by their names.
        let names = self.own.scopes.keys().chain(self.registers.keys()).cloned();
        let scopes = names.map(|name| (name, Published::default())).collect();
        self.own = Own { replaces, scopes, ..Own::default() };
        self.pending = None;
        self.begun = Some(lasts);
        self.read_from_start();
        // Nobody may have the settings any more.
        self.registers
            .values_mut()
            .flat_map(BTreeMap::values_mut)
            .for_each(|known| known.own = true);
    }

    /// Reads all streams from their start with the next sync.
    pub(crate) fn read_from_start(&mut self) {
        self.peers.values_mut().for_each(|peer| peer.read = Point::START);
    }

    /// What has been applied of others' streams.
    pub(crate) fn seen(&self) -> BTreeMap<Id, u64> {
        let read = self.peers.iter().filter(|(_, peer)| peer.read.0 > 0);
        read.map(|(device, peer)| (*device, peer.read.0)).collect()
    }

    /// All devices that this one or another has heard of, but itself and those that others take the place of.
    pub(crate) fn known_devices(&self) -> BTreeSet<Id> {
        let told = self.peers.values().flat_map(|peer| peer.seen.keys());
        let devices = self.peers.keys().chain(told).copied();
        devices.filter(|device| *device != self.device && !self.is_replaced(*device)).collect()
    }

    /// Whether another device's stream takes the place of this one. One that is gone takes nobody's: its device may have
    /// been restored to the stream before.
    pub(crate) fn is_replaced(&self, device: Id) -> bool {
        self.replacing().any(|peer| peer.replaces.contains(&device))
    }

    /// Forgets the streams that others take the place of.
    pub(crate) fn drop_replaced(&mut self) {
        let replaced = self.replacing().flat_map(|peer| peer.replaces.iter().copied());
        let replaced: BTreeSet<Id> = replaced.collect();
        self.peers.retain(|device, _| !replaced.contains(device));
    }

    fn replacing(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values().filter(|peer| !peer.is_missing)
    }

    /// Nothing of the space is there. A folder that is not mounted is no remote that was emptied: a person mends that one.
    pub(crate) fn absent(&self) -> SyncError {
        SyncError::Absent { address: self.address.clone() }
    }

    /// The error of a remote, or that the folder is gone that this device has synced with.
    pub(crate) fn absent_if_gone(&self, error: SyncError) -> SyncError {
        let is_gone = error.of_remote() == Some(ErrorKind::NoContainer);
        if is_gone && self.synced_at.is_some() { self.absent() } else { error }
    }

    /// Forgets the devices whose streams are gone.
    pub(crate) fn drop_missing(&mut self) {
        self.peers.retain(|_, peer| !peer.is_missing);
    }
}

impl Own {
    pub(crate) fn head(&self, name: &str, at: Timestamp) -> Head {
        Head {
            v: VERSION,
            n: self.n,
            token: self.token,
            name: name.to_owned(),
            at,
            last: self.last,
            segments: self.segments.iter().map(|segment| segment.listed.clone()).collect(),
            seen: self.seen.clone(),
            replaces: self.replaces.clone(),
            has: BTreeMap::new(),
            closed: false,
        }
    }

    /// What each shared conversation has, unless limits apply to it here.
    pub(crate) fn digests(&self, selection: &Selection) -> BTreeMap<String, Digest> {
        let is_shared = |text: &str| text.parse().is_ok_and(|scope| selection.includes(&scope));
        let is_counted = |known: &Published| known.has.upto >= known.seq && !known.has.is_limited;
        let counted =
            self.scopes.iter().filter(|(text, known)| is_counted(known) && is_shared(text));
        counted.map(|(text, known)| (text.clone(), known.has.digest)).collect()
    }

    /// Notes the name of a conversation. Whether it was forgotten completely can be looked up by its name alone.
    pub(crate) fn learn_scope(&mut self, scope: &Scope) {
        let text = scope.to_string();
        if self.scopes.contains_key(&text) {
            return;
        }
        self.scopes.insert(text, Published::default());
        // The default conversation tells which ones were forgotten: look into it again.
        if let Some(root) = self.scopes.get_mut(&Scope::Default.to_string()) {
            root.position = Position::default();
        }
    }
}

/// What a segment has of each conversation.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Coverage(pub(crate) BTreeMap<String, Covered>);

impl Coverage {
    pub(crate) fn add(&mut self, scope: &str, covered: Covered) {
        let both = self.0.get(scope).copied().unwrap_or_default().and(covered);
        self.0.insert(scope.to_owned(), both);
    }

    /// Adds what another segment has.
    pub(crate) fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|(scope, covered)| self.add(&scope, covered));
    }
}

impl Covered {
    /// What two have together.
    fn and(self, other: Self) -> Self {
        let seqs = match (self.seqs, other.seqs) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, other) => one.or(other),
        };
        Self { seqs, set: self.set || other.set }
    }

    /// Adds a message's number.
    pub(crate) fn add(&mut self, seq: u64) {
        *self = self.and(Self { seqs: Some((seq, seq)), set: false });
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("space", &self.space)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
