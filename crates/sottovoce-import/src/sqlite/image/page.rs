//! Pages of a database's image, and numbers in its files.

/// The most bytes of a database, which is read into memory.
pub(super) const LARGEST: u64 = 1 << 30;

/// Writes a page at its place. Page numbers begin at 1.
pub(super) fn put(image: &mut Vec<u8>, number: u32, page: &[u8]) {
    let Some(start) = (number as usize).checked_sub(1).and_then(|n| n.checked_mul(page.len()))
    else {
        return;
    };
    let Some(end) = start.checked_add(page.len()).filter(|end| *end as u64 <= 2 * LARGEST) else {
        return;
    };
    if image.len() < end {
        image.resize(end, 0);
    }
    if let Some(place) = image.get_mut(start..end) {
        place.copy_from_slice(page);
    }
}

/// Reads four bytes as a big-endian number.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*four))
}

/// The page size, if it is a valid one.
pub(super) fn page_size(size: u32) -> Option<usize> {
    let fits = size.is_power_of_two() && (512..=65_536).contains(&size);
    fits.then_some(size as usize)
}
