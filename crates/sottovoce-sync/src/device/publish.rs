//! Writes this device's stream

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::device::round::Round;
use crate::device::state::{Coverage, Covered, Own, OwnSegment, State};
use crate::device::{Device, Thoroughness};
use crate::error::SyncResult;
use crate::id::Id;
use crate::report::{SyncProgress, SyncReport};
use crate::stream::change::Batch;
use crate::stream::head::{Point, SegmentRef};
use crate::stream::segment::{LARGEST, Segment};

/// The size up to which the last segment is written again with what follows.
const TAIL: usize = 64 << 10;

/// How long a device that has nothing to publish waits before it tells what it has read.
const ACKNOWLEDGE: SignedDuration = SignedDuration::from_mins(1);

impl Device {
    /// Publishes what is new. Returns `false`, and publishes nothing, if the stream at the remote is not what this
    /// device wrote last.
    pub(super) async fn publish(
        &mut self,
        thoroughness: Thoroughness,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<bool> {
        let is_full = thoroughness == Thoroughness::Full;
        // A stream that begins says again what others may know.
        let is_first = self.state.own.n == 0;
        let mut is_checked = is_full;
        if is_full && !self.reconcile().await? {
            return Ok(false);
        }
        if is_full && self.state.own.n > 0 && !self.tidy().await? {
            return Ok(false);
        }
        loop {
            let mut round = self.collect(report).await?;
            let is_cut = round.is_cut;
            if round.is_empty() && self.state.own.n > 0 && !self.is_to_acknowledge(thoroughness) {
                round.note_in(&mut self.state.own);
            } else {
                if !std::mem::take(&mut is_checked) && !self.reconcile().await? {
                    return Ok(false);
                }
                report.published += round.said;
                report.forgotten += if is_first { 0 } else { round.forgotten };
                if !self.write(round).await? {
                    return Ok(false);
                }
                progress(SyncProgress::Publishing { done: report.published });
            }
            if !is_cut {
                break;
            }
        }
        if self.state.begun.take().is_some() {
            self.heard.clear();
            self.inherited.clear();
            // What they had was read for the last time.
            let Self { state: State { peers, own, .. }, .. } = self;
            peers.retain(|device, _| !own.replaces.contains(device));
            self.save().await?;
            return self.tidy().await;
        }
        Ok(true)
    }

    /// Whether others should hear what this device has read.
    fn is_to_acknowledge(&self, thoroughness: Thoroughness) -> bool {
        let own = &self.state.own;
        let is_due = own.at.is_none_or(|at| self.home.now().duration_since(at).abs() > ACKNOWLEDGE);
        own.is_to_tell
            || (thoroughness == Thoroughness::Full || is_due) && own.seen != self.state.seen()
    }

    /// Compares the stream at the remote with what this device wrote last, and completes a write that was interrupted.
    /// Returns whether it may go on.
    pub(super) async fn reconcile(&mut self) -> SyncResult<bool> {
        let (head, is_torn) = self.objects.heads(self.state.device).await?;
        let written = head.map(|head| (head.n, head.token));
        // Only a write of this device that was interrupted tears a head, and the journal tells of that one. Any other was
        // written by a later state of this store, and is not to be written over.
        let is_anothers = is_torn && self.state.pending.is_none();
        if let Some(pending) = self.state.pending.take() {
            let own = &mut self.state.own;
            if written == Some((pending.n, pending.token)) {
                let is_to_tell = own.is_to_tell;
                *own = *pending;
                own.is_to_tell = is_to_tell;
            }
        }
        let own = &self.state.own;
        Ok(!is_anothers && written == (own.n > 0).then_some((own.n, own.token)))
    }

    /// Writes a round. Returns `false` if something of this stream is not at the remote.
    async fn write(&mut self, mut round: Round) -> SyncResult<bool> {
        let device = self.state.device;
        let mut next = self.state.own.clone();
        let mut doomed = std::mem::take(&mut next.superseded);
        let Some(gone) = self.rewrite(&mut next, &round).await? else { return Ok(false) };
        doomed.extend(gone);
        for id in &round.dropped {
            doomed.extend(next.pieces.get(id).into_iter().flatten());
        }
        self.add_batches(&mut next, std::mem::take(&mut round.batches)).await?;
        if !self.merge(&mut next, &round).await? {
            return Ok(false);
        }
        round.note_in(&mut next);
        next.n += 1;
        next.token = self.new_id()?;
        next.seen = self.state.seen();
        let now = self.home.now();
        next.at = Some(now);
        next.is_to_tell = false;
        let mut head = next.head(&self.state.name, now);
        if !round.is_cut {
            head.has = next.digests(&self.state.selection);
        }
        self.state.pending = Some(Box::new(next));
        self.save().await?;
        self.objects.put_head(device, &head).await?;
        if let Some(pending) = self.state.pending.take() {
            self.state.own = *pending;
        }
        self.save().await?;
        for object in doomed {
            self.objects.delete(device, object).await?;
        }
        Ok(true)
    }

    /// Writes batches into segments. Small ones join the last segment.
    async fn add_batches(
        &self,
        own: &mut Own,
        batches: Vec<(Batch, Covered, usize)>,
    ) -> SyncResult<()> {
        let mut batches = batches.into_iter().peekable();
        while batches.peek().is_some() {
            let point = Point(own.last.0 + 1, self.new_id()?);
            let mut part =
                Segment { before: own.last, publishes: vec![point], batches: Vec::new() };
            let mut scopes = Coverage::default();
            let mut bytes = 0;
            while let Some((mut batch, covered, size)) =
                batches.next_if(|(_, _, size)| bytes == 0 || bytes + size <= LARGEST)
            {
                bytes += size;
                batch.k = point.0;
                scopes.add(&batch.scope, covered);
                part.batches.push(batch);
            }
            own.last = point;
            self.add_segment(own, part, scopes, bytes).await?;
        }
        Ok(())
    }

    async fn add_segment(
        &self,
        own: &mut Own,
        part: Segment,
        mut scopes: Coverage,
        bytes: usize,
    ) -> SyncResult<()> {
        let mut segment = part;
        if bytes < TAIL
            && let (Some(mut tail), Some(last)) = (own.tail.clone(), own.segments.last())
            && last.listed.bytes() < TAIL as u64
        {
            tail.append(segment);
            segment = tail;
            if let Some(last) = own.segments.pop() {
                own.superseded.push(last.listed.object());
                scopes.append(last.scopes);
            }
        }
        let object = self.new_id()?;
        let put = self.objects.put_segment(self.state.device, object, segment);
        let (bytes, segment) = put.await?;
        let listed = SegmentRef(object, segment.before.0 + 1, segment.last().0, bytes);
        own.segments.push(OwnSegment { listed, scopes });
        own.tail = (bytes < TAIL as u64).then_some(segment);
        Ok(())
    }

    /// Deletes what no head lists: objects of interrupted publishes, and the streams that this one takes the place of.
    /// Returns whether everything that the head lists is there.
    async fn tidy(&self) -> SyncResult<bool> {
        let own = &self.state.own;
        let segments = own.segments.iter().map(|segment| segment.listed.object());
        let needed: BTreeSet<Id> = segments.chain(own.pieces.values().flatten().copied()).collect();
        let there: BTreeSet<Id> =
            self.objects.listed(self.state.device).await?.into_iter().collect();
        if !needed.is_subset(&there) {
            return Ok(false);
        }
        for object in there.difference(&needed).filter(|object| !own.superseded.contains(object)) {
            self.objects.delete(self.state.device, *object).await?;
        }
        if own.replaces.is_empty() || self.state.begun.is_some() {
            return Ok(true);
        }
        let left = self.objects.streams().await?;
        for device in own.replaces.iter().filter(|device| left.contains(device)) {
            // Heads first: a head without its segments would look damaged.
            self.objects.delete_heads(*device).await?;
            self.objects.delete_objects(*device).await?;
        }
        Ok(true)
    }
}
