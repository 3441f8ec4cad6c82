//! Takes what was forgotten out of this device's segments

use std::collections::BTreeSet;

use crate::device::Device;
use crate::device::round::Round;
use crate::device::state::{Coverage, Own, OwnSegment};
use crate::error::SyncResult;
use crate::id::Id;
use crate::stream::head::SegmentRef;
use crate::stream::segment::Segment;

impl Device {
    /// Writes those segments again that have what is not to be there any more. Returns the objects that are to go at
    /// once; `None` if a segment is not at the remote.
    pub(super) async fn rewrite(
        &self,
        own: &mut Own,
        round: &Round,
    ) -> SyncResult<Option<Vec<Id>>> {
        let mut gone = Vec::new();
        for at in 0..own.segments.len() {
            let Some(segment) = own.segments.get(at) else { break };
            if !segment.scopes.0.iter().any(|(scope, covered)| round.concerns(scope, *covered)) {
                continue;
            }
            let listed = segment.listed.clone();
            let Some(text) = self.own_segment(own, at).await? else { return Ok(None) };
            let before = size(&text);
            let text = self.scrubbed(own, round, text);
            if size(&text) == before {
                continue;
            }
            let object = self.new_id()?;
            let put = self.objects.put_segment(self.state.device, object, text);
            let (bytes, text) = put.await?;
            gone.push(listed.object());
            if let Some(segment) = own.segments.get_mut(at) {
                segment.listed = SegmentRef(object, listed.first(), listed.last(), bytes);
            }
            if at + 1 == own.segments.len() && own.tail.is_some() {
                own.tail = Some(text);
            }
        }
        Ok(Some(gone))
    }

    /// One of this device's segments: the last one as the state has it, any other from the remote.
    async fn own_segment(&self, own: &Own, at: usize) -> SyncResult<Option<Segment>> {
        if at + 1 == own.segments.len()
            && let Some(tail) = own.tail.clone()
        {
            return Ok(Some(tail));
        }
        match own.segments.get(at) {
            Some(segment) => self.objects.segment(self.state.device, &segment.listed).await,
            None => Ok(None),
        }
    }

    /// A segment without forgotten messages, and without settings that have newer values.
    fn scrubbed(&self, own: &Own, round: &Round, mut segment: Segment) -> Segment {
        for batch in &mut segment.batches {
            let Ok(scope) = batch.scope.parse() else { continue };
            let published = round.scopes.get(&batch.scope).or_else(|| own.scopes.get(&batch.scope));
            batch.said.retain(|said| {
                let is_gone =
                    |gone: &BTreeSet<_>| said.origin(&scope).is_some_and(|o| gone.contains(&o));
                !published.is_some_and(|published| is_gone(&published.gone.0))
            });
            let registers = self.state.registers.get(&batch.scope);
            batch.set.retain(|name, register| {
                let known = registers.and_then(|registers| registers.get(name));
                known.is_none_or(|known| known.stamp <= register.stamp)
            });
        }
        segment.batches.retain(|batch| !batch.is_empty());
        segment
    }

    /// Merges the last segments while there are eight of a size. Returns whether all of them were at the remote.
    pub(super) async fn merge(&self, own: &mut Own, round: &Round) -> SyncResult<bool> {
        while let Some(start) = mergeable(&own.segments) {
            let mut merged: Option<Segment> = None;
            let mut covered = Coverage::default();
            for at in start..own.segments.len() {
                let Some(segment) = self.own_segment(own, at).await? else { return Ok(false) };
                match &mut merged {
                    Some(merged) => merged.append(segment),
                    None => merged = Some(segment),
                }
            }
            let Some(merged) = merged.map(|merged| self.scrubbed(own, round, merged)) else {
                break;
            };
            let object = self.new_id()?;
            let (first, last) = (merged.before.0 + 1, merged.last().0);
            let put = self.objects.put_segment(self.state.device, object, merged);
            let (bytes, _) = put.await?;
            for segment in own.segments.drain(start..) {
                own.superseded.push(segment.listed.object());
                covered.append(segment.scopes);
            }
            let listed = SegmentRef(object, first, last, bytes);
            own.segments.push(OwnSegment { listed, scopes: covered });
            own.tail = None;
        }
        Ok(true)
    }
}

/// How many messages and settings a segment has.
fn size(segment: &Segment) -> usize {
    segment.batches.iter().map(|batch| batch.said.len() + batch.set.len()).sum()
}

/// The sizes up to which eight segments are merged. Three levels lead from 64 KiB to the largest segments.
const LEVELS: [u64; 3] = [64 << 10, 512 << 10, 1 << 20];

/// How many segments of a size are merged.
const TOGETHER: usize = 8;

/// Where the last segments begin that are to be merged: at least eight of a size.
fn mergeable(segments: &[OwnSegment]) -> Option<usize> {
    LEVELS.into_iter().find_map(|limit| {
        let small =
            segments.iter().rev().take_while(|segment| segment.listed.bytes() <= limit + limit / 8);
        let count = small.count();
        (count >= TOGETHER).then_some(segments.len() - count)
    })
}
