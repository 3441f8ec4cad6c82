//! Names of objects and folders, checked before they reach a server or a disk, and names that a listing returned

use std::collections::BTreeSet;

use crate::error::{Action, ErrorKind, RemoteError};
use crate::remote::{MAX_NAMES, MAX_OBJECT, Result};

/// The most bytes of a name.
const LONGEST: usize = 512;

/// The most bytes of a part of a name. File systems allow 255, but some that encrypt names only 143.
const LONGEST_PART: usize = 128;

/// Whether a text can be one part of a name.
pub(crate) fn is_part(text: &str) -> bool {
    (1..=LONGEST_PART).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Whether a text can be a name.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= LONGEST && text.split('/').all(is_part)
}

/// Checks the name of an object, or of a folder, which may be empty.
pub(crate) fn check(action: Action, place: &str, name: &str) -> Result<()> {
    if is_name(name) || (action == Action::List && name.is_empty()) {
        return Ok(());
    }
    // The name may come from a remote's data, so it is not repeated.
    Err(RemoteError::new(
        ErrorKind::Other,
        action,
        place,
        "the name is not one that objects can have",
    ))
}

/// Checks the size of an object.
pub(crate) fn check_size(action: Action, place: &str, size: u64) -> Result<()> {
    if size <= MAX_OBJECT as u64 {
        return Ok(());
    }
    Err(RemoteError::new(ErrorKind::TooLarge, action, place, "the object has more than 16 MiB"))
}

/// The place of an object, as errors name it.
pub(crate) fn place(remote: &str, name: &str) -> String {
    if name.is_empty() { remote.to_owned() } else { format!("{remote}/{name}") }
}

/// The names of a listing, as many as are allowed.
pub(crate) struct Names<'a> {
    names: BTreeSet<String>,
    seen: usize,
    place: &'a str,
}

impl<'a> Names<'a> {
    pub(crate) fn new(place: &'a str) -> Self {
        Self { names: BTreeSet::new(), seen: 0, place }
    }

    /// Adds an entry. Entries that are left out count, so that they cannot go on for ever.
    pub(crate) fn add(&mut self, part: &str, is_folder: bool) -> Result<()> {
        self.seen += 1;
        if self.seen > MAX_NAMES {
            return Err(RemoteError::new(
                ErrorKind::TooLarge,
                Action::List,
                self.place,
                format!("there are more than {MAX_NAMES} names"),
            ));
        }
        if is_part(part) {
            self.names.insert(format!("{part}{}", if is_folder { "/" } else { "" }));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<String> {
        self.names.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_folder_or_hides() {
        for name in ["a", "a/b.0", "A-_.9/x"] {
            assert!(is_name(name), "{name}");
        }
        let long = ["x"; 400].join("/");
        for name in [
            "", "/", "a/", "/a", "a//b", "..", "a/../b", ".a", "a/.b", "a b", "ä", "a\0", "a\\b",
            "a%2e", &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
        assert!(!is_part(&"x".repeat(129)));
    }
}
