//! Spaces: what devices share, and the code that lets another device in

use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::SyncError;
use crate::id::Id;

/// The bytes of a code: the space, its key and a checksum.
const LENGTH: usize = 16 + 32 + CHECKSUM;

/// The bytes of a checksum.
const CHECKSUM: usize = 4;

/// An invitation into a space: whoever has its text can read everything that is shared there. `Debug` does not show the
/// key.
///
/// The text is the space's identifier, its key and a checksum in base32, then `@` and the address of the remote.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    pub(crate) space: Id,
    pub(crate) key: Zeroizing<[u8; 32]>,
    pub(crate) address: String,
}

impl Invitation {
    /// The text. Show it to nobody but the owner.
    pub fn code(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(LENGTH));
        bytes.extend(self.space.to_bytes());
        bytes.extend(self.key.iter());
        let checksum = self.checksum();
        bytes.extend(checksum);
        let mut code = Zeroizing::new(String::with_capacity(96 + self.address.len()));
        BASE32_NOPAD.encode_append(&bytes, &mut code);
        code.push('@');
        code.push_str(&self.address);
        code
    }

    /// The address of the remote.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same space at another address of the remote: a folder may have another path on this device.
    #[must_use]
    pub fn at(self, address: impl Into<String>) -> Self {
        Self { address: address.into(), ..self }
    }

    fn checksum(&self) -> [u8; CHECKSUM] {
        let mut digest = Sha256::new();
        digest.update(self.space.to_bytes());
        digest.update(self.key.as_slice());
        digest.update(self.address.as_bytes());
        let [a, b, c, d, ..]: [u8; 32] = digest.finalize().into();
        [a, b, c, d]
    }
}

/// Accepts the code with spaces, line ends and in lower case.
impl FromStr for Invitation {
    type Err = SyncError;

    fn from_str(text: &str) -> Result<Self, SyncError> {
        let wrong = |reason| SyncError::InvalidCode { reason };
        let (code, address) = text.trim().split_once('@').ok_or(wrong("it has no address"))?;
        let code: Zeroizing<String> = Zeroizing::new(
            code.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_uppercase()).collect(),
        );
        let bytes = BASE32_NOPAD.decode(code.as_bytes()).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| wrong("it has characters that no code has"))?;
        let parts = bytes.split_first_chunk().and_then(|(space, rest)| {
            let (key, checksum) = rest.split_first_chunk()?;
            Some((space, key, <[u8; CHECKSUM]>::try_from(checksum).ok()?))
        });
        let (space, key, checksum) = parts.ok_or(wrong("it is too short or too long"))?;
        let space = Id::new(u128::from_be_bytes(*space));
        let invitation = Self { space, key: Zeroizing::new(*key), address: address.to_owned() };
        match invitation.checksum() == checksum {
            true => Ok(invitation),
            false => Err(wrong("it was mistyped")),
        }
    }
}

sottovoce::debug_shows!(Invitation: space, address);

#[cfg(test)]
mod tests {
    use super::*;

    fn invitation() -> Invitation {
        let key = Zeroizing::new([7; 32]);
        Invitation { space: Id::new(1), key, address: "s3://bucket/prefix".to_owned() }
    }

    #[test]
    fn a_code_is_read_back_also_in_pieces_and_lower_case() {
        let code = invitation().code();
        assert_eq!(code.parse::<Invitation>().unwrap(), invitation());
        let (front, address) = code.split_once('@').unwrap();
        let (one, two) = front.split_at(40);
        let typed = format!(" {} {}\n@{address}\n", one.to_lowercase(), two);
        assert_eq!(typed.parse::<Invitation>().unwrap(), invitation());
    }

    #[test]
    fn a_mistyped_code_is_refused() {
        let code = invitation().code();
        for (at, _) in code.char_indices() {
            let mut typed = code.to_string();
            let other = if code.as_bytes().get(at) == Some(&b'A') { "B" } else { "A" };
            typed.replace_range(at..=at, other);
            assert!(typed.parse::<Invitation>().is_err(), "{at}");
        }
        assert!("".parse::<Invitation>().is_err());
        assert!(code.split_at(40).0.parse::<Invitation>().is_err());
    }

    #[test]
    fn debug_does_not_show_the_key() {
        assert!(!format!("{:?}", invitation()).contains('7'));
    }
}
