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

/// How the folders of a scope are named, one a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Dm,
    Guild,
    Named,
}

impl ScopeKind {
    pub(crate) const ALL: [Self; 3] = [Self::Dm, Self::Guild, Self::Named];

    /// The folder of a root that these scopes are in.
    pub(crate) fn folder(self) -> &'static str {
        let [dms, guilds, conversations] = SCOPE_FOLDERS;
        match self {
            Self::Dm => dms,
            Self::Guild => guilds,
            Self::Named => conversations,
        }
    }

    /// How many levels are below that.
    pub(crate) fn levels(self) -> usize {
        match self {
            Self::Dm | Self::Named => 1,
            Self::Guild => 3,
        }
    }

    /// The scope of a folder; `None` where no scope has that folder.
    pub(crate) fn scope(self, folders: &[String]) -> Option<Scope> {
        let ids: Option<Vec<String>> = folders.iter().map(|folder| decode(folder)).collect();
        let scope = match (self, ids?.as_mut_slice()) {
            (Self::Dm, [user]) => Scope::Dm { user: std::mem::take(user) },
            (Self::Named, [id]) => Scope::Named { id: std::mem::take(id) },
            (Self::Guild, [guild, channel, user]) => {
                let [guild, channel, user] = [guild, channel, user].map(std::mem::take);
                Scope::Guild { guild, channel, user }
            }
            _ => return None,
        };
        // What another spelling leads to is not where the scope is kept.
        let kept = scope.folder().ok()?;
        (kept.get(1..) == Some(folders)).then_some(scope)
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

fn decode(folder: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(folder.len());
    let mut rest = folder.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high << 4 | low).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_leads_back_to_its_scope_and_another_spelling_to_none() {
        let id = |id: &str| id.to_owned();
        for scope in [
            Scope::Dm { user: id("Bob é/..") },
            Scope::Dm { user: id("con") },
            Scope::Named { id: id("kitchen-2_") },
            Scope::Guild { guild: id("1"), channel: id("A b"), user: id("😀") },
        ] {
            let folders = scope.folder().unwrap();
            let kind = ScopeKind::ALL.into_iter().find(|kind| kind.folder() == folders[0]).unwrap();
            assert_eq!(folders.len(), kind.levels() + 1);
            assert_eq!(kind.scope(&folders[1..]), Some(scope));
        }
        for wrong in ["%62ob", "Bob", "b%6", "%zz", "%FF", "%ff", "con", ".", "a b", "%e9", ""] {
            assert_eq!(ScopeKind::Dm.scope(&[id(wrong)]), None, "{wrong}");
        }
        assert_eq!(ScopeKind::Guild.scope(&[id("1")]), None);
    }

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
