//! Paging of long lists.

use rmcp::ErrorData;
use rmcp::model::{Cursor, PaginatedRequestParams};

use crate::fault::Fault;

/// Items per page in the protocol's own lists.
const PAGE: usize = 100;
/// The most items per page in a tool's list.
const MOST: usize = 100;

/// Returns one page of a protocol list and the cursor of the next page.
pub(crate) fn by_cursor<T>(
    all: Vec<T>,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<Cursor>), ErrorData> {
    let start = match request.and_then(|request| request.cursor) {
        None => 0,
        // The list may have become shorter since the cursor was given.
        Some(cursor) => cursor
            .parse::<usize>()
            .map_err(|_| ErrorData::invalid_params("the cursor is not from this server", None))?,
    };
    let next = start.saturating_add(PAGE);
    let next = (next < all.len()).then(|| next.to_string());
    Ok((all.into_iter().skip(start).take(PAGE).collect(), next))
}

/// The most items that a tool returns: `usual` unless the call says how many.
pub(crate) fn limit(given: Option<usize>, usual: usize, most: usize) -> Result<usize, Fault> {
    let limit = given.unwrap_or(usual);
    match (1..=most).contains(&limit) {
        true => Ok(limit),
        false => Err(Fault::new(format!("limit {limit} is not from 1 to {most}"))),
    }
}

/// The page of a list that a tool returns. Pages count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) number: usize,
    pub(crate) size: usize,
}

impl Page {
    pub(crate) fn new(number: Option<u32>, size: Option<u32>, usual: usize) -> Result<Self, Fault> {
        let number = number.map_or(1, |number| number as usize);
        let size = size.map_or(usual, |size| size as usize);
        if number == 0 {
            return Err(Fault::new("page counts from 1"));
        }
        if !(1..=MOST).contains(&size) {
            return Err(Fault::new(format!("pageSize {size} is not from 1 to {MOST}")));
        }
        Ok(Self { number, size })
    }

    /// How many items there are up to the end of this page.
    pub(crate) fn end(self) -> usize {
        self.number.saturating_mul(self.size)
    }

    pub(crate) fn of<T>(self, all: impl Iterator<Item = T>) -> Vec<T> {
        all.skip((self.number - 1).saturating_mul(self.size)).take(self.size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_cursors_leave_nothing_out_and_give_nothing_twice() {
        let all: Vec<usize> = (0..250).collect();
        let (mut seen, mut request) = (Vec::new(), None);
        loop {
            let (items, next) = by_cursor(all.clone(), request).unwrap();
            seen.extend(items);
            let Some(next) = next else { break };
            request = Some(PaginatedRequestParams::default().with_cursor(Some(next)));
        }
        assert_eq!(seen, all);
        let page = |number| Page::new(Some(number), Some(7), 10).unwrap();
        let paged: Vec<usize> = (1..=36).flat_map(|n| page(n).of(all.iter().copied())).collect();
        assert_eq!(paged, all);
        assert!(page(37).of(all.iter()).is_empty());
        for (number, size) in [(0, 10), (1, 0), (1, 101)] {
            assert!(Page::new(Some(number), Some(size), 10).is_err());
        }
        let beyond = PaginatedRequestParams::default().with_cursor(Some("900".to_owned()));
        assert!(by_cursor(all.clone(), Some(beyond)).unwrap().0.is_empty());
        let strange = PaginatedRequestParams::default().with_cursor(Some("x".to_owned()));
        assert!(by_cursor(all, Some(strange)).is_err());
    }
}
