//! Short digests for comparing things.

use sha2::{Digest, Sha256};

/// The first half of the SHA-256 of these items, each with its length before it as 4 bytes big-endian.
pub(crate) fn fingerprint(items: &[&[u8]]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for item in items {
        // Items are read from files of limited size.
        let length = u32::try_from(item.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(item);
    }
    let digest: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_distinguished_by_their_lengths() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_ne!(fingerprint(&[b"ab"]), fingerprint(&[b"ab", b""]));
        assert_eq!(fingerprint(&[b"ab"]), fingerprint(&[b"ab"]));
    }
}
