//! The write-ahead log, `-wal`, in the format that SQLite documents as "The Write-Ahead Log".

use super::page::{number, page_size, put};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The magic number. It is one higher if the checksums are of big-endian numbers.
const MAGIC: u32 = 0x377f_0682;

/// Applies every complete transaction of a log.
pub(super) fn apply(image: &mut Vec<u8>, log: &[u8]) {
    // Like SQLite: a log beside an empty database belongs to another one.
    if image.is_empty() {
        return;
    }
    let _ = frames(image, log);
}

/// `None` where the log ends.
fn frames(image: &mut Vec<u8>, log: &[u8]) -> Option<()> {
    let magic = number(log, 0)?;
    let is_big = magic == MAGIC + 1;
    if !is_big && magic != MAGIC {
        return None;
    }
    let size = page_size(number(log, 8)?)?;
    let salts = log.get(16..24)?;
    let mut sum = checksum((0, 0), log.get(..24)?, is_big);
    if (number(log, 24)?, number(log, 28)?) != sum {
        return None;
    }
    let mut waiting: Vec<(u32, &[u8])> = Vec::new();
    for frame in log.get(HEADER..)?.chunks_exact(FRAME_HEADER + size) {
        let (head, page) = frame.split_at_checked(FRAME_HEADER)?;
        sum = checksum(checksum(sum, head.get(..8)?, is_big), page, is_big);
        let is_whole = head.get(8..16)? == salts && (number(head, 16)?, number(head, 20)?) == sum;
        let page_number = number(head, 0)?;
        if !is_whole || page_number == 0 {
            return None;
        }
        waiting.push((page_number, page));
        let pages = number(head, 4)?;
        if pages > 0 {
            // This frame commits a transaction, and gives the database's size.
            waiting.drain(..).for_each(|(number, page)| put(image, number, page));
            if let Some(length) = (pages as usize).checked_mul(size) {
                image.truncate(length);
            }
        }
    }
    Some(())
}

fn checksum((mut one, mut two): (u32, u32), bytes: &[u8], is_big: bool) -> (u32, u32) {
    let (words, _) = bytes.as_chunks::<4>();
    let word = |bytes: [u8; 4]| match is_big {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    };
    let (pairs, _) = words.as_chunks::<2>();
    for [first, second] in pairs {
        one = one.wrapping_add(word(*first)).wrapping_add(two);
        two = two.wrapping_add(word(*second)).wrapping_add(one);
    }
    (one, two)
}
