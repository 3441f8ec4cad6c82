//! Caches lately read ranges of packs, so that reading them again opens no file.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::folder::Listing;
use crate::store::read::query::RangeQuery;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::head::Head;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;

/// The most cached messages.
const MESSAGES: usize = 512;
/// The most bytes of their contents.
const BYTES: usize = 1 << 18;
/// A listing of more names is not cached.
const NAMES: usize = 4096;

/// The change stamps of the conversation's folder and of its packs.
type Stamps = (Option<u64>, Option<u64>);

/// What was read while the folders had the stamps in the head. Any change of a name in a folder changes its stamp. A
/// new stamp of the packs discards the ranges, since a pack may have been replaced.
#[derive(Default)]
pub(crate) struct RangeCache {
    stamps: Stamps,
    listing: Option<Arc<Listing>>,
    ranges: VecDeque<CachedRange>,
}

/// All messages of one pack that a query selects.
struct CachedRange {
    pack: PackName,
    query: RangeQuery,
    messages: Vec<Arc<StoredMessage>>,
}

impl RangeCache {
    /// The listing of the folders when they had the head's stamps.
    pub(crate) fn listing(&self, head: &Head) -> Option<Arc<Listing>> {
        let is_same = head.stamp.is_some() && self.stamps == (head.stamp, head.packs);
        self.listing.clone().filter(|_| is_same)
    }

    pub(crate) fn set_listing(&mut self, head: &Head, listing: &Arc<Listing>) {
        if self.stamps.1 != head.packs {
            self.ranges.clear();
        }
        self.stamps = (head.stamp, head.packs);
        let is_small = listing.names.len() + listing.packs.len() <= NAMES;
        self.listing = is_small.then(|| Arc::clone(listing));
    }

    /// The messages of a pack that a query selects, if they are cached.
    pub(crate) fn find(
        &mut self,
        pack: PackName,
        query: &RangeQuery,
    ) -> Option<Vec<Arc<StoredMessage>>> {
        let at = self.ranges.iter().position(|range| {
            range.pack == pack && (range.query == *query || range.query.includes(query))
        })?;
        let range = self.ranges.remove(at)?;
        let is_same = range.query == *query;
        let wanted = range.messages.iter().filter(|stored| is_same || query.has(stored.name));
        let found = wanted.cloned().collect();
        self.ranges.push_back(range);
        Some(found)
    }

    /// Caches all messages of a pack that a query selects, unless they are too many or the packs have another stamp
    /// than the head's.
    pub(crate) fn add(
        &mut self,
        head: &Head,
        pack: PackName,
        query: &RangeQuery,
        messages: Vec<Arc<StoredMessage>>,
    ) {
        let range = CachedRange { pack, query: query.clone(), messages };
        if self.stamps.1 != head.packs || range.messages.len() > MESSAGES || range.bytes() > BYTES {
            return;
        }
        self.ranges.retain(|known| known.pack != pack || !query.includes(&known.query));
        self.ranges.push_back(range);
        let is_over = |ranges: &VecDeque<CachedRange>| {
            ranges.iter().map(|range| range.messages.len()).sum::<usize>() > MESSAGES
                || ranges.iter().map(CachedRange::bytes).sum::<usize>() > BYTES
        };
        while is_over(&self.ranges) {
            self.ranges.pop_front();
        }
    }

    /// Wipes ranges that hold a forgotten message.
    pub(crate) fn forget(&mut self, erased: &SeqSet) {
        self.ranges.retain(|range| !range.messages.iter().any(|m| erased.contains(m.seq)));
    }
}

impl CachedRange {
    fn bytes(&self) -> usize {
        self.messages.iter().map(|stored| stored.message.content.len()).sum()
    }
}
