//! Reads what other devices have published

use std::collections::BTreeSet;

use crate::device::state::State;
use crate::device::{Device, Thoroughness};
use crate::error::{SyncError, SyncResult};
use crate::id::Id;
use crate::report::{Problem, SyncProgress, SyncReport};
use crate::stream::ahead::Ahead;
use crate::stream::head::{Head, Point, SegmentRef};
use crate::stream::objects::Slot;
use crate::stream::reading;

/// How often a stream's head is read again because a segment that it lists is gone.
const ATTEMPTS: usize = 3;

impl Device {
    /// Applies what is new in the streams of all other devices. A stream that cannot be used does not keep back the
    /// others: the report says so.
    pub(super) async fn receive(
        &mut self,
        thoroughness: Thoroughness,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<()> {
        let State { begun, own, .. } = &self.state;
        let is_beginning = begun
            .as_ref()
            .is_some_and(|lasts| !own.replaces.is_empty() || lasts.values().any(|last| *last > 0));
        if is_beginning && !self.has_heard {
            // What others have must be known completely before this stream begins.
            self.state.read_from_start();
        }
        self.has_heard = true;
        self.fetch_wanted(report).await?;
        let mut devices = self.state.known_devices();
        let found = self.objects.devices().await;
        let (listed, is_more) = found.map_err(|error| self.state.absent_if_gone(error))?;
        if listed.is_empty() && self.state.synced_at.is_some() {
            return Err(self.state.absent());
        }
        devices.extend(listed);
        if is_more {
            report.problems.push(Problem::TooManyDevices);
        }
        let mut asked = BTreeSet::from([self.state.device]);
        while let Some(device) = devices.pop_first() {
            // What the streams had that this one took the place of was read when it began.
            let State { begun, own, .. } = &self.state;
            let was_left = begun.is_none() && own.replaces.contains(&device);
            if !asked.insert(device) || was_left || self.state.is_replaced(device) {
                continue;
            }
            match self.receive_from(device, thoroughness, report, progress).await {
                // What this device began anew must know of all others from their start.
                Ok(()) if !self.has_heard => return Ok(()),
                Ok(()) => {}
                Err(SyncError::Object { place, reason }) => {
                    self.keep_stream(device);
                    report.problems.push(Problem::Unusable { place, reason });
                }
                Err(error) => return Err(error),
            }
            // It may tell of devices that were not known yet.
            devices.extend(self.state.known_devices().difference(&asked));
        }
        // It may have been looked for before the head that takes its place was read.
        report.problems.retain(|problem| {
            let Problem::Missing { device, .. } = problem else { return true };
            !self.state.is_replaced(*device) && !self.state.own.replaces.contains(device)
        });
        self.state.drop_replaced();
        self.fill_waiting().await?;
        self.note_withheld(report);
        Ok(())
    }

    async fn receive_from(
        &mut self,
        device: Id,
        thoroughness: Thoroughness,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<()> {
        // A head that was written since the first one was read is found at once, and not with the next poll.
        while let Some(head) = self.head_of(device, thoroughness, report).await? {
            if !self.read_newest(device, head, report, progress).await? {
                self.keep_stream(device);
                report.problems.push(Problem::Incomplete { device, name: self.name_of(device) });
                return Ok(());
            }
            if thoroughness == Thoroughness::Full {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the stream of this head, or of a newer one if segments that it lists are gone. Returns whether it could.
    async fn read_newest(
        &mut self,
        device: Id,
        head: Head,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<bool> {
        let mut head = Some(head);
        for _ in 0..ATTEMPTS {
            let Some(found) = head else { return Ok(true) };
            if self.read_stream(device, &found, report, progress).await? {
                return Ok(true);
            }
            // A segment that the head lists was replaced in the meantime.
            head = self.objects.newest_head(device).await?;
        }
        Ok(false)
    }

    /// The newest head of a device, if it may have something new.
    async fn head_of(
        &mut self,
        device: Id,
        thoroughness: Thoroughness,
        report: &mut SyncReport,
    ) -> SyncResult<Option<Head>> {
        let known = self.state.peers.get(&device).map_or(0, |peer| peer.n);
        let next = self.objects.slot(device, known + 1).await?;
        let is_newer = matches!(&next, Slot::Head(head) if head.n > known);
        if !is_newer && thoroughness == Thoroughness::Poll && known > 0 {
            return Ok(None);
        }
        // The head after the known one: whether there is a newer one shows when it has been read.
        let is_next = thoroughness == Thoroughness::Poll
            && matches!(&next, Slot::Head(head) if head.n == known + 1);
        let other = match is_next {
            true => Slot::Empty,
            false => self.objects.slot(device, known).await?,
        };
        let torn = [&next, &other].into_iter().find_map(|slot| match slot {
            Slot::Unreadable(reason) => Some(*reason),
            Slot::Empty | Slot::Head(_) => None,
        });
        if torn.is_some() {
            // It may be a newer head whose answer was cut off, and not one that was never written completely.
            self.keep_stream(device);
        }
        let heads = [next.head(), other.head()].into_iter().flatten();
        let Some(head) = heads.max_by_key(|head| head.n) else {
            match torn {
                Some(reason) if known > 0 => {
                    let place = format!("the stream of {}", self.name_of(device));
                    report.problems.push(Problem::Unusable { place, reason });
                }
                None if known > 0 => {
                    report.problems.push(Problem::Missing { device, name: self.name_of(device) });
                    self.state.peers.entry(device).or_default().is_missing = true;
                }
                _ => {}
            }
            return Ok(None);
        };
        if head.n < known {
            report.problems.push(Problem::RolledBack { device, name: head.name.clone() });
            if torn.is_none() {
                self.complete().await?;
            }
        }
        if head.closed {
            self.state.closed = true;
            self.save().await?;
            return Err(SyncError::Closed);
        }
        // What is known here too would make the state grow with the square of the devices.
        let State { device: own, peers, .. } = &mut self.state;
        let is_news = |(other, told): &(&Id, &u64)| {
            *other == own || peers.get(other).is_none_or(|peer| peer.last < **told)
        };
        let seen = head.seen.iter().filter(is_news).map(|(other, told)| (*other, *told)).collect();
        let peer = peers.entry(device).or_default();
        peer.n = head.n;
        peer.is_missing = false;
        peer.last = head.last.0;
        peer.name.clone_from(&head.name);
        peer.at = Some(head.at);
        peer.seen = seen;
        peer.replaces.clone_from(&head.replaces);
        self.heads.insert(device, head.clone());
        Ok(Some(head))
    }

    /// Applies the segments with new publishes. Returns whether all of them were there.
    async fn read_stream(
        &mut self,
        device: Id,
        head: &Head,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<bool> {
        let read = self.read_of(device);
        if reading::after(head, read).is_none() {
            self.complete().await?;
            self.set_read(device, Point::START);
        }
        let total = bytes(reading::after(head, self.read_of(device)).unwrap_or_default());
        let (mut done, mut ahead) = (0, Ahead::default());
        while let Some([listed, rest @ ..]) = reading::after(head, self.read_of(device)) {
            progress(SyncProgress::Receiving { done, total: total.max(done) });
            let segment = match ahead.take(listed).await {
                Some(segment) => segment?,
                None => self.objects.segment(device, listed).await?,
            };
            // The next one arrives while this one is stored.
            if let Some(next) = rest.first() {
                ahead.fetch(&self.objects, device, next);
            }
            let Some(segment) = segment else { return Ok(false) };
            let read = self.read_of(device);
            if read != Point::START && !segment.has(read) {
                // Another stream in this one's place: read it from its start.
                self.complete().await?;
                self.set_read(device, Point::START);
                continue;
            }
            let last = segment.last();
            let batches = segment.batches.into_iter().filter(|batch| batch.k > read.0);
            self.apply(device, batches.collect(), report).await?;
            self.set_read(device, last);
            self.save().await?;
            done += listed.bytes();
        }
        Ok(true)
    }

    /// Begins a new stream, since another device's went back to an older state: this one may be the only one that has what
    /// that device had published since.
    async fn complete(&mut self) -> SyncResult<()> {
        match self.state.begun {
            Some(_) => Ok(()),
            None => self.begin_stream().await,
        }
    }

    /// Leaves a stream in its place that this device's was to take: it may have what could not be read just now. Returns
    /// whether it was to be replaced.
    pub(super) fn keep_stream(&mut self, device: Id) -> bool {
        self.state.own.replaces.remove(&device)
    }

    fn read_of(&self, device: Id) -> Point {
        self.state.peers.get(&device).map_or(Point::START, |peer| peer.read)
    }

    fn set_read(&mut self, device: Id, read: Point) {
        self.state.peers.entry(device).or_default().read = read;
    }

    pub(super) fn name_of(&self, device: Id) -> String {
        let name = self.state.peers.get(&device).map(|peer| peer.name.clone());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| device.to_string())
    }

    /// Reports streams of which others have read more than the remote shows here.
    fn note_withheld(&self, report: &mut SyncReport) {
        for (device, peer) in &self.state.peers {
            let told = self.state.peers.values().filter_map(|other| other.seen.get(device)).max();
            if told.is_some_and(|told| *told > peer.last) {
                let name = self.name_of(*device);
                report.problems.push(Problem::Withheld { device: *device, name });
            }
        }
    }
}

fn bytes(segments: &[SegmentRef]) -> u64 {
    segments.iter().map(SegmentRef::bytes).sum()
}
