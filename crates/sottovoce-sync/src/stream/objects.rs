//! The sealed objects of a space at its remote

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use sottovoce::exchange::{ObjectKind, SpaceKey};
use zeroize::Zeroizing;

use crate::error::{SyncError, SyncResult, off_thread};
use crate::id::Id;
use crate::stream::head::{Head, SegmentRef};
use crate::stream::segment::Segment;
use sottovoce_remote::Remote;

/// The most devices of a space. Names beyond that are ignored: whoever can write to the remote can invent any.
const MOST_DEVICES: usize = 256;

/// How often a head is read that is another one each time.
const ATTEMPTS: usize = 4;

/// A space's objects.
pub(crate) struct Objects {
    remote: Arc<dyn Remote>,
    space: Id,
    key: Arc<SpaceKey>,
}

/// What a slot contains.
#[derive(Debug)]
pub(crate) enum Slot {
    Empty,
    /// What cannot be used: a torn write, or a forgery.
    Unreadable(&'static str),
    Head(Box<Head>),
}

impl Slot {
    pub(crate) fn head(self) -> Option<Head> {
        match self {
            Self::Head(head) => Some(*head),
            Self::Empty | Self::Unreadable(_) => None,
        }
    }
}

impl Objects {
    pub(crate) fn new(remote: Arc<dyn Remote>, space: Id, key: &[u8; 32]) -> SyncResult<Self> {
        Ok(Self { remote, space, key: Arc::new(SpaceKey::new(&space.to_string(), key)?) })
    }

    /// The devices that have heads, at most 256, and whether there are names of more.
    pub(crate) async fn devices(&self) -> SyncResult<(Vec<Id>, bool)> {
        let names = self.remote.list(&format!("{}/h", self.space)).await?;
        let device = |name: &String| name.rsplit_once('.')?.0.parse::<Id>().ok();
        let mut devices: Vec<Id> = names.iter().filter_map(device).collect();
        devices.dedup();
        let is_more = devices.len() > MOST_DEVICES;
        devices.truncate(MOST_DEVICES);
        Ok((devices, is_more))
    }

    /// Reads the slot for heads of this number. What cannot be used is read again: an answer that was cut off differs each
    /// time, a torn write does not.
    pub(crate) async fn slot(&self, device: Id, n: u64) -> SyncResult<Slot> {
        let element = format!("{device}.{}", n % 2);
        let name = format!("{}/h/{element}", self.space);
        let mut before = None;
        for _ in 0..ATTEMPTS {
            let Some(sealed) = self.remote.get(&name).await? else { return Ok(Slot::Empty) };
            let reason = match self.parse_head(device, &element, n, &sealed) {
                Ok(head) => return Ok(Slot::Head(Box::new(head))),
                Err(reason) => reason,
            };
            if before.replace(sealed.clone()).is_some_and(|before| before == sealed) {
                return Ok(Slot::Unreadable(reason));
            }
        }
        Err(SyncError::Object { place: name, reason: "it is another one each time it is read" })
    }

    fn parse_head(
        &self,
        device: Id,
        element: &str,
        n: u64,
        sealed: &[u8],
    ) -> Result<Head, &'static str> {
        let text = self.key.open(ObjectKind::Head, &device.to_string(), element, sealed);
        let text = text.ok_or("it was cut off, or is not of this space")?;
        let head = Head::parse(&text)?;
        match head.n % 2 == n % 2 {
            true => Ok(head),
            false => Err("it is in the other's place"),
        }
    }

    /// The newer one of a device's two heads.
    pub(crate) async fn newest_head(&self, device: Id) -> SyncResult<Option<Head>> {
        Ok(self.heads(device).await?.0)
    }

    /// The newer one of a device's two heads, and whether one of them cannot be used.
    pub(crate) async fn heads(&self, device: Id) -> SyncResult<(Option<Head>, bool)> {
        let slots = [self.slot(device, 0).await?, self.slot(device, 1).await?];
        let is_torn = slots.iter().any(|slot| matches!(slot, Slot::Unreadable(_)));
        let heads = slots.into_iter().filter_map(Slot::head);
        Ok((heads.max_by_key(|head| head.n), is_torn))
    }

    /// Whether one of these devices has closed the space.
    pub(crate) async fn are_closed(&self, devices: Vec<Id>) -> SyncResult<bool> {
        for device in devices {
            if self.newest_head(device).await?.is_some_and(|head| head.closed) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) async fn put_head(&self, device: Id, head: &Head) -> SyncResult<()> {
        let element = format!("{device}.{}", head.n % 2);
        let text = head.to_text().map_err(unwritable)?;
        let sealed = self.key.seal(ObjectKind::Head, &device.to_string(), &element, &text)?;
        Ok(self.remote.put(&format!("{}/h/{element}", self.space), sealed.into()).await?)
    }

    /// Reads a segment. `None` if it is not there: the head that lists it may be outdated.
    pub(crate) async fn segment(
        &self,
        device: Id,
        listed: &SegmentRef,
    ) -> SyncResult<Option<Segment>> {
        let Some(text) = self.object(ObjectKind::Segment, device, listed.object()).await? else {
            return Ok(None);
        };
        let (place, listed) = (self.name(device, listed.object()), listed.clone());
        let parsed = off_thread(move || Segment::parse(&text, &listed)).await?;
        parsed.map(Some).map_err(|reason| SyncError::Object { place, reason })
    }

    /// Writes a segment under a new name. Returns its size, and the segment.
    pub(crate) async fn put_segment(
        &self,
        device: Id,
        object: Id,
        segment: Segment,
    ) -> SyncResult<(u64, Segment)> {
        let written = move || (segment.to_text(), segment);
        let (text, segment) = off_thread(written).await?;
        let text = text.map_err(unwritable)?;
        let bytes = self.put(ObjectKind::Segment, device, object, text).await?;
        Ok((bytes, segment))
    }

    /// Reads an object of another kind. `None` if it is not there.
    pub(crate) async fn object(
        &self,
        kind: ObjectKind,
        device: Id,
        object: Id,
    ) -> SyncResult<Option<Zeroizing<Vec<u8>>>> {
        let name = self.name(device, object);
        let Some(sealed) = self.remote.get(&name).await? else { return Ok(None) };
        let key = Arc::clone(&self.key);
        let open = move || key.open(kind, &device.to_string(), &object.to_string(), &sealed);
        let text = off_thread(open).await?;
        let reason = "it was cut off or changed, or is not of this space";
        text.map(Some).ok_or(SyncError::Object { place: name, reason })
    }

    pub(crate) async fn put(
        &self,
        kind: ObjectKind,
        device: Id,
        object: Id,
        text: Zeroizing<Vec<u8>>,
    ) -> SyncResult<u64> {
        let key = Arc::clone(&self.key);
        let seal = move || key.seal(kind, &device.to_string(), &object.to_string(), &text);
        let sealed = off_thread(seal).await??;
        let bytes = sealed.len() as u64;
        self.remote.put(&self.name(device, object), Bytes::from(sealed)).await?;
        Ok(bytes)
    }

    pub(crate) async fn delete(&self, device: Id, object: Id) -> SyncResult<()> {
        Ok(self.remote.delete(&self.name(device, object)).await?)
    }

    /// The objects of a device that are at the remote.
    pub(crate) async fn listed(&self, device: Id) -> SyncResult<Vec<Id>> {
        let names = self.remote.list(&format!("{}/o/{device}", self.space)).await?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The devices of which there is a head or another object.
    pub(crate) async fn streams(&self) -> SyncResult<BTreeSet<Id>> {
        let names = self.remote.list(&format!("{}/o", self.space)).await?;
        let device = |name: &String| name.strip_suffix('/')?.parse().ok();
        let mut streams: BTreeSet<Id> = names.iter().filter_map(device).collect();
        streams.extend(self.devices().await?.0);
        Ok(streams)
    }

    /// Deletes everything of a device but its heads.
    pub(crate) async fn delete_objects(&self, device: Id) -> SyncResult<()> {
        for object in self.listed(device).await? {
            self.delete(device, object).await?;
        }
        Ok(())
    }

    pub(crate) async fn delete_heads(&self, device: Id) -> SyncResult<()> {
        for slot in 0..2 {
            self.remote.delete(&format!("{}/h/{device}.{slot}", self.space)).await?;
        }
        Ok(())
    }

    fn name(&self, device: Id, object: Id) -> String {
        format!("{}/o/{device}/{object}", self.space)
    }
}

fn unwritable(_: serde_json::Error) -> SyncError {
    SyncError::State { reason: "a value cannot be written as JSON" }
}

sottovoce::debug_shows!(Objects: space);
