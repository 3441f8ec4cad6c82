//! Reads one segment ahead, while the one before it is stored

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::error::SyncResult;
use crate::id::Id;
use crate::stream::head::SegmentRef;
use crate::stream::objects::Objects;
use crate::stream::segment::Segment;

/// The segment that is being read ahead. Dropping this ends the reading.
#[derive(Default)]
pub(crate) struct Ahead {
    listed: Option<SegmentRef>,
    reading: JoinSet<SyncResult<Option<Segment>>>,
}

impl Ahead {
    /// Begins to read a segment.
    pub(crate) fn fetch(&mut self, objects: &Arc<Objects>, device: Id, listed: &SegmentRef) {
        let (objects, asked) = (Arc::clone(objects), listed.clone());
        self.listed = Some(listed.clone());
        self.reading.spawn(async move { objects.segment(device, &asked).await });
    }

    /// The segment, if it is the one that was read ahead.
    pub(crate) async fn take(
        &mut self,
        listed: &SegmentRef,
    ) -> Option<SyncResult<Option<Segment>>> {
        let is_it = self.listed.take().is_some_and(|ahead| ahead == *listed);
        if !is_it {
            self.reading = JoinSet::new();
            return None;
        }
        self.reading.join_next().await?.ok()
    }
}
