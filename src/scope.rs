//! Scopes: whose conversation it is.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The owner of a conversation. Each scope has a folder of its own, and each file's seal covers the scope, so a file
/// that is moved to another scope does not open. Scopes do not nest.
///
/// Their text is `default`, `dm/42`, `guild/1/2/42` or `named/kitchen`. In an id, each byte (in UTF-8) of `/`, `%`,
/// white space and what a terminal may interpret is written as `%` and two hexadecimal digits, so that each scope has
/// exactly one text.
///
/// ```
/// use sottovoce::Scope;
///
/// let kitchen: Scope = "named/kitchen".parse()?;
/// assert_eq!(kitchen, Scope::Named { id: "kitchen".into() });
/// assert_eq!(kitchen.to_string(), "named/kitchen");
/// assert!("kitchen".parse::<Scope>().is_err());
/// # Ok::<(), sottovoce::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Scope {
    /// The only conversation of a single-user host.
    #[default]
    Default,
    /// Direct messages with one person.
    Dm {
        /// The user's id.
        user: String,
    },
    /// One user in one channel of a shared space.
    Guild {
        /// The shared space.
        guild: String,
        /// The channel's id.
        channel: String,
        /// The user's id.
        user: String,
    },
    /// A named conversation.
    Named {
        /// The name.
        id: String,
    },
    /// The catalog of conversations, which only the library writes.
    #[doc(hidden)]
    Catalog,
}

/// The folders of a root with scopes other than [`Scope::Default`].
pub(crate) const SCOPE_FOLDERS: [&str; 3] = ["dms", "guilds", "conversations"];

/// The folder of a root for backups, if no other folder was chosen.
pub(crate) const BACKUPS: &str = "backups";

impl Scope {
    /// The scope's parts, as seals cover them. Ids are not encoded.
    pub(crate) fn parts(&self) -> Vec<&str> {
        match self {
            Self::Default => vec!["default"],
            Self::Dm { user } => vec!["dm", user],
            Self::Guild { guild, channel, user } => vec!["guild", guild, channel, user],
            Self::Named { id } => vec!["named", id],
            Self::Catalog => vec!["catalog"],
        }
    }

    /// The scope's folder below the storage root, one element per level. Empty for [`Scope::Default`].
    ///
    /// # Errors
    /// [`Error::InvalidScope`] if an id is empty, has control characters or is longer than 200 bytes when encoded.
    pub fn folder(&self) -> Result<Vec<String>> {
        let [dms, guilds, conversations] = SCOPE_FOLDERS.map(str::to_owned);
        Ok(match self {
            Self::Default => vec![],
            Self::Dm { user } => vec![dms, encode(user)?],
            Self::Guild { guild, channel, user } => {
                vec![guilds, encode(guild)?, encode(channel)?, encode(user)?]
            }
            Self::Named { id } => vec![conversations, encode(id)?],
            Self::Catalog => {
                return Err(Error::InvalidScope { reason: "the catalog is the library's own" });
            }
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        let mut parts = parts.iter();
        f.write_str(parts.next().copied().unwrap_or_default())?;
        parts.try_for_each(|id| write!(f, "/{}", Escaped(id)))
    }
}

/// An id as a scope's text shows it.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.0.chars().try_for_each(|c| {
            if is_plain(c) {
                return f.write_char(c);
            }
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer).bytes().try_for_each(|byte| write!(f, "%{byte:02x}"))
        })
    }
}

/// Whether a character is written as it is. Separators, invisible characters and those that change the text's
/// direction are not. The list is fixed, so that a scope's text does not change with the version of Unicode.
fn is_plain(c: char) -> bool {
    let is_hidden = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    !matches!(c, '/' | '%') && !c.is_whitespace() && !c.is_control() && !is_hidden
}

/// Accepts exactly what `Display` writes.
impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |reason| Err(Error::InvalidScope { reason });
        let parts: Vec<&str> = text.split('/').collect();
        let id = |text: &str| {
            decode(text).ok_or(Error::InvalidScope { reason: "a `%` in an id is written %25" })
        };
        let scope = match parts.as_slice() {
            ["default"] => Self::Default,
            ["dm", user] => Self::Dm { user: id(user)? },
            ["guild", guild, channel, user] => {
                Self::Guild { guild: id(guild)?, channel: id(channel)?, user: id(user)? }
            }
            ["named", name] => Self::Named { id: id(name)? },
            _ => {
                return refuse(
                    "it must be default, dm/USER, guild/GUILD/CHANNEL/USER or named/NAME; a `/` in an id is %2f",
                );
            }
        };
        scope.folder()?;
        if scope.to_string() != text {
            return refuse(
                "in an id a space is written %20, a `/` %2f and a `%` %25; what needs no `%` is written as it is",
            );
        }
        Ok(scope)
    }
}

/// The kinds of scopes with folders of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Dm,
    Guild,
    Named,
}

impl ScopeKind {
    pub(crate) const ALL: [Self; 3] = [Self::Dm, Self::Guild, Self::Named];

    /// The folder of a root with these scopes.
    pub(crate) fn folder(self) -> &'static str {
        let [dms, guilds, conversations] = SCOPE_FOLDERS;
        match self {
            Self::Dm => dms,
            Self::Guild => guilds,
            Self::Named => conversations,
        }
    }

    /// How many levels of folders are below it.
    pub(crate) fn levels(self) -> usize {
        match self {
            Self::Dm | Self::Named => 1,
            Self::Guild => 3,
        }
    }

    /// The scope of a folder; `None` if no scope has that folder.
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
        // Another spelling of a folder's name does not lead to the scope.
        let kept = scope.folder().ok()?;
        (kept.get(1..) == Some(folders)).then_some(scope)
    }
}

/// Device names that Windows reserves in every folder, with or without an extension.
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
    use proptest::prelude::*;

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

    #[test]
    fn every_scope_has_one_text_and_every_text_one_scope() {
        for (text, scope) in [
            ("default", Scope::Default),
            ("dm/42", Scope::Dm { user: "42".into() }),
            ("dm/Bob%20%2f%25", Scope::Dm { user: "Bob /%".into() }),
            ("dm/é\"\\'", Scope::Dm { user: "é\"\\'".into() }),
            ("named/e\u{301}", Scope::Named { id: "e\u{301}".into() }),
            ("named/a%e2%80%aeb", Scope::Named { id: "a\u{202e}b".into() }),
            ("guild/1/2/42", {
                let [guild, channel, user] = ["1", "2", "42"].map(str::to_owned);
                Scope::Guild { guild, channel, user }
            }),
        ] {
            assert_eq!(scope.to_string(), text);
            assert_eq!(text.parse::<Scope>().unwrap(), scope);
        }
        for wrong in [
            "",
            "dm",
            "dm/",
            "dm/1/2",
            "Dm/1",
            "guild/1/2",
            "guild/1/2/3/4",
            "named/",
            "42",
            "default/",
            "dm/%34",
            "dm/%2F",
            "dm/%",
            "dm/%zz",
            "dm/%ff",
            "dm/a b",
            "dm/a\n",
            "dm/%0a",
            " dm/1",
        ] {
            assert!(wrong.parse::<Scope>().is_err(), "{wrong}");
        }
    }

    fn ids() -> impl Strategy<Value = String> {
        prop_oneof!["\\PC{1,12}", "[a-zA-Z0-9/%. _-]{1,12}", any::<String>()]
    }

    fn scopes() -> impl Strategy<Value = Scope> {
        prop_oneof![
            Just(Scope::Default),
            ids().prop_map(|user| Scope::Dm { user }),
            ids().prop_map(|id| Scope::Named { id }),
            (ids(), ids(), ids()).prop_map(|(guild, channel, user)| Scope::Guild {
                guild,
                channel,
                user
            }),
        ]
    }

    /// Folds names as file systems may compare them, ignoring letter case and Unicode normalization.
    fn folded(folders: &[String]) -> Vec<String> {
        folders.iter().map(|name| name.to_lowercase()).collect()
    }

    proptest! {
        #[test]
        fn a_scope_comes_back_from_its_text_and_its_folder(scope in scopes()) {
            let Ok(folders) = scope.folder() else {
                prop_assert!(scope.to_string().parse::<Scope>().is_err());
                return Ok(());
            };
            prop_assert_eq!(&scope.to_string().parse::<Scope>().unwrap(), &scope);
            prop_assert!(folders.iter().flat_map(|name| name.bytes()).all(|b| b.is_ascii()));
            let top = folders.first();
            let kind = ScopeKind::ALL.into_iter().find(|k| top.is_some_and(|top| k.folder() == top));
            if let Some(kind) = kind {
                prop_assert_eq!(kind.scope(&folders[1..]), Some(scope));
            }
        }

        #[test]
        fn no_two_scopes_share_a_folder_on_any_file_system(a in scopes(), b in scopes()) {
            let (Ok(one), Ok(other)) = (a.folder(), b.folder()) else { return Ok(()) };
            prop_assert_eq!(folded(&one) == folded(&other), a == b);
        }
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
