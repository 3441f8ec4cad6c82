//! Whose conversation it is.

use crate::error::{Error, Result};

/// The owner of a conversation. Every scope has a folder of its own and is part of what each file's seal covers, so
/// that a file moved from one scope to another does not open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Scope {
    /// The one conversation of a single-user host.
    #[default]
    Default,
    /// Direct messages with one person.
    Dm {
        /// The person's id.
        user: String,
    },
    /// One person in one channel of a shared space.
    Guild {
        /// The shared space.
        guild: String,
        /// The channel in it.
        channel: String,
        /// The person's id.
        user: String,
    },
    /// A conversation with a name of its own.
    Named {
        /// The name.
        id: String,
    },
}

/// The folders of a root that hold other scopes than [`Scope::Default`].
pub(crate) const SCOPE_FOLDERS: [&str; 3] = ["dms", "guilds", "conversations"];

impl Scope {
    /// The scope's parts as the seal covers them, ids in the host's own bytes.
    pub(crate) fn parts(&self) -> Vec<&str> {
        match self {
            Self::Default => vec!["default"],
            Self::Dm { user } => vec!["dm", user],
            Self::Guild { guild, channel, user } => vec!["guild", guild, channel, user],
            Self::Named { id } => vec!["named", id],
        }
    }

    /// The scope's folder below the storage root, one element a level; empty for [`Scope::Default`].
    ///
    /// # Errors
    /// [`Error::InvalidScope`] for an id that is empty, holds control characters or is over 200 bytes when encoded.
    pub fn folder(&self) -> Result<Vec<String>> {
        let [dms, guilds, conversations] = SCOPE_FOLDERS.map(str::to_owned);
        Ok(match self {
            Self::Default => vec![],
            Self::Dm { user } => vec![dms, encode(user)?],
            Self::Guild { guild, channel, user } => {
                vec![guilds, encode(guild)?, encode(channel)?, encode(user)?]
            }
            Self::Named { id } => vec![conversations, encode(id)?],
        })
    }
}

/// Device names that Windows reserves in every folder, with or without an ending.
const RESERVED: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

fn encode(id: &str) -> Result<String> {
    use std::fmt::Write;
    let refuse = |reason| Err(Error::InvalidScope { reason });
    if id.is_empty() {
        return refuse("it is empty");
    }
    if id.chars().any(char::is_control) {
        return refuse("it holds control characters");
    }
    let reserved = RESERVED.contains(&id);
    let mut folder = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        let plain = byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if plain && !(reserved && at == 0) {
            folder.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(folder, "%{byte:02x}");
        }
    }
    if folder.len() > 200 {
        return refuse("it is over 200 bytes long once encoded");
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dm(user: &str) -> Result<Vec<String>> {
        Scope::Dm { user: user.into() }.folder()
    }

    #[test]
    fn ids_neither_escape_nor_merge() {
        let mut seen = std::collections::BTreeSet::new();
        for id in
            ["../x", "/", ".", "..", "CON", "con", "Bob", "bob", "%62ob", "é", "e\u{301}", "a b"]
        {
            let folder = dm(id).unwrap().pop().unwrap();
            assert!(
                folder
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_%".contains(&b)),
                "{folder}"
            );
            assert!(!RESERVED.contains(&folder.as_str()));
            assert!(seen.insert(folder), "{id} shares a folder");
        }
        assert!(dm("").is_err());
        assert!(dm("a\0b").is_err());
        assert!(dm(&"x".repeat(4096)).is_err());
    }
}
