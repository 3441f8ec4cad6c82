//! The rollback journal, `-journal`, in the format that SQLite documents as "The Rollback Journal".

use super::page::{number, page_size, put};

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// The header of a part of the journal.
struct Header {
    records: u32,
    nonce: u32,
    pages: u32,
    sector: usize,
    page: usize,
}

/// Rolls the journal's transaction back. Returns `false` if the journal spans several databases: only SQLite can tell
/// whether that one is stale.
pub(super) fn roll_back(image: &mut Vec<u8>, journal: &[u8]) -> bool {
    if journal.ends_with(&MAGIC) && journal.len() > MAGIC.len() {
        return false;
    }
    let _ = parts(image, journal);
    true
}

/// `None` where the journal ends.
fn parts(image: &mut Vec<u8>, journal: &[u8]) -> Option<()> {
    let first = header(journal, 0)?;
    image.truncate((first.pages as usize).checked_mul(first.page)?);
    let (sector, size) = (first.sector, first.page);
    let length = size.checked_add(8)?;
    let (mut part, mut at) = (first, 0usize);
    loop {
        at = at.checked_add(sector)?;
        let records = match part.records {
            // An unsynced part extends to the end of the file.
            u32::MAX => journal.len().checked_sub(at)? / length,
            records => records as usize,
        };
        for _ in 0..records {
            let record = journal.get(at..)?.get(..length)?;
            let page = record.get(4..)?.get(..size)?;
            let page_number = number(record, 0)?;
            if page_number == 0 || checksum(part.nonce, page) != number(record, length - 4)? {
                return None;
            }
            if page_number <= part.pages {
                put(image, page_number, page);
            }
            at = at.checked_add(length)?;
        }
        at = at.checked_next_multiple_of(sector)?;
        part = Header { pages: part.pages, ..header(journal, at)? };
    }
}

fn header(journal: &[u8], at: usize) -> Option<Header> {
    let header = journal.get(at..)?;
    let sector = number(header, 20)?;
    let sector = (sector.is_power_of_two() && (32..=65_536).contains(&sector)).then_some(sector)?;
    header.starts_with(&MAGIC).then_some(())?;
    Some(Header {
        records: number(header, 8)?,
        nonce: number(header, 12)?,
        pages: number(header, 16)?,
        sector: sector as usize,
        page: page_size(number(header, 24)?)?,
    })
}

/// The nonce plus every 200th byte of a page, from its end.
fn checksum(nonce: u32, page: &[u8]) -> u32 {
    let mut sum = nonce;
    let mut at = page.len().saturating_sub(200);
    while at > 0 {
        sum = sum.wrapping_add(u32::from(page.get(at).copied().unwrap_or_default()));
        at = at.saturating_sub(200);
    }
    sum
}
