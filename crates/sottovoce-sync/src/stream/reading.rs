//! Finds out which segments of a stream a reader needs

use crate::stream::head::{Head, Point, SegmentRef};

/// The segments with publishes after this one; none if the reader has all of them.
///
/// `None` if the stream never had that publish, as far as the head tells: it was rolled back or is another's.
pub(crate) fn after(head: &Head, read: Point) -> Option<&[SegmentRef]> {
    if read.0 > head.last.0 || (read.0 == head.last.0 && read != head.last) {
        return None;
    }
    let first = head.segments.partition_point(|segment| segment.last() <= read.0);
    head.segments.get(first..)
}
