//! Access: which clients may open which conversations, and by which host names they may reach the server.

mod forwarded_user;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use sottovoce::Scope;
use sottovoce_net::{Foreign, Names, Token, bearer};
use zeroize::Zeroizing;

/// What clients must show. `Debug` shows no secret.
#[derive(Default)]
#[must_use]
pub struct Access {
    token: Option<Token>,
    /// `None` if no file of keys is named. One that is named closes the server, however many keys it has.
    keys: Option<Vec<Key>>,
    names: Names,
    unnamed: Scope,
}

/// A secret and the conversations that it opens.
struct Key {
    secret: Token,
    /// At a path without a scope, the first.
    scopes: Vec<Scope>,
    /// Whether the client says with each request for which person it speaks, and reaches that person's conversation alone.
    is_for_users: bool,
}

/// The scope of a line for a key that speaks for many people.
const EVERY_USER: &str = "dm/*";

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// It cannot be read.
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
    /// It holds no key, so nobody could be let in.
    #[error("{} holds no key", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line is not a scope and a key.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No key was shown, or an unknown one.
    NoKey,
    /// The key belongs to other conversations.
    OtherScope,
    /// The key speaks for many people, and the request does not say for whom.
    NoUser,
    /// The host name is not this server's, or the origin may not ask.
    Foreign(Foreign),
}

impl Access {
    /// Access with a token that opens every conversation, or without one.
    pub fn new(token: Option<Zeroizing<String>>) -> Self {
        Self { token: token.map(Token::new), ..Self::default() }
    }

    /// Allows these host names besides those of loopback, and these origins of pages and programs.
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.names.add(hosts);
        self
    }

    /// Sets the conversation of paths that name none; the default one unless set. A key's own conversation comes first.
    pub fn unnamed(mut self, scope: Scope) -> Self {
        self.unnamed = scope;
        self
    }

    /// Adds the keys of a file. Each line holds a scope, such as `named/kitchen`, white space, and a key. A key on several
    /// lines opens several conversations; the first is the one that it opens at a path without a scope. Empty lines and
    /// those that begin with `#` are skipped.
    ///
    /// The scope `dm/*` is for a client with many people. Each of its requests names one of them in the header
    /// `X-OpenWebUI-User-Id`, and opens the conversation `dm/ID` alone. No other key makes the header count. Such a key
    /// stands on one line.
    ///
    /// # Errors
    /// [`KeysError`], which never shows a key.
    pub fn keys_file(mut self, path: &Path) -> Result<Self, KeysError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| KeysError::Unreadable { path: path.to_owned(), source })?;
        let text = Zeroizing::new(text);
        #[cfg(unix)]
        if let Ok(found) = std::fs::metadata(path)
            && std::os::unix::fs::MetadataExt::mode(&found) & 0o077 != 0
        {
            tracing::warn!(file = %path.display(), "others have rights to the file of keys; take them away with chmod 600");
        }
        let keys = self.keys.get_or_insert_default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong =
                |reason: String| KeysError::Line { path: path.to_owned(), line: at + 1, reason };
            let mut words = line.split_whitespace();
            let (Some(scope), Some(secret), None) = (words.next(), words.next(), words.next())
            else {
                return Err(wrong("must be a scope and a key, such as `named/kitchen KEY`".into()));
            };
            let is_for_users = scope == EVERY_USER;
            let scopes = match is_for_users {
                true => Vec::new(),
                false => vec![scope.parse().map_err(|error| {
                    wrong(format!("does not begin with a scope such as `named/kitchen`: {error}"))
                })?],
            };
            match keys.iter_mut().find(|key| key.secret.is(secret)) {
                Some(key) if key.is_for_users || is_for_users => {
                    return Err(wrong(format!("a key for `{EVERY_USER}` stands on one line")));
                }
                Some(key) => key.scopes.extend(scopes),
                None => {
                    let secret = Token::new(Zeroizing::new(secret.to_owned()));
                    keys.push(Key { secret, scopes, is_for_users });
                }
            }
        }
        if keys.is_empty() {
            return Err(KeysError::Empty { path: path.to_owned() });
        }
        Ok(self)
    }

    /// Whether a client must show a key.
    pub(crate) fn is_closed(&self) -> bool {
        self.token.is_some() || self.keys.is_some()
    }

    /// Whether a request may learn what concerns all conversations.
    pub(crate) fn opens_all(&self, headers: &HeaderMap) -> bool {
        match &self.token {
            Some(token) => token.is_shown(headers),
            None => self.keys.is_none(),
        }
    }

    /// The conversation of a request that asks for `asked`, or for none.
    pub(crate) fn scope(
        &self,
        headers: &HeaderMap,
        asked: Option<Scope>,
    ) -> Result<Scope, Refusal> {
        if !self.is_closed() {
            return Ok(asked.unwrap_or_else(|| self.unnamed.clone()));
        }
        let shown = bearer(headers).ok_or(Refusal::NoKey)?;
        if self.token.as_ref().is_some_and(|token| token.is(shown)) {
            return Ok(asked.unwrap_or_else(|| self.unnamed.clone()));
        }
        let key = self.key(shown).ok_or(Refusal::NoKey)?;
        let scopes = match key.is_for_users {
            true => {
                let user = forwarded_user::read(headers).ok_or(Refusal::NoUser)?;
                &[Scope::Dm { user: user.to_owned() }][..]
            }
            false => &key.scopes,
        };
        match asked {
            Some(asked) if scopes.contains(&asked) => Ok(asked),
            Some(_) => Err(Refusal::OtherScope),
            None => scopes.first().cloned().ok_or(Refusal::NoKey),
        }
    }

    /// The key with this secret.
    fn key(&self, shown: &str) -> Option<&Key> {
        // Every key is compared, so that the time tells nothing about which one matched.
        let keys = self.keys.iter().flatten();
        keys.fold(None, |found, key| if key.secret.is(shown) { Some(key) } else { found })
    }

    /// The name of the key that a request shows: the first conversation of its line in the file. The token has none.
    pub(crate) fn key_name(&self, headers: &HeaderMap) -> String {
        match bearer(headers).and_then(|shown| self.key(shown)) {
            Some(key) if key.is_for_users => EVERY_USER.to_owned(),
            Some(key) => key.scopes.first().map(Scope::to_string).unwrap_or_default(),
            None => String::new(),
        }
    }

    /// Whether a client reached the server by one of its names, and from an origin that may ask.
    pub(crate) fn check_names(&self, headers: &HeaderMap, at: IpAddr) -> Result<(), Refusal> {
        self.names.check(headers, at, self.is_closed()).map_err(Refusal::Foreign)
    }
}

sottovoce::debug_shows!(Access as it: keys = it.keys.as_ref().map(Vec::len), names);

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::AUTHORIZATION;

    use super::*;

    fn named(id: &str) -> Scope {
        Scope::Named { id: id.into() }
    }

    fn keyed(lines: &str) -> Result<Access, KeysError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, lines).unwrap();
        Access::default().keys_file(&file)
    }

    fn shown(key: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(key))])
    }

    #[test]
    fn a_key_opens_its_own_conversations_and_no_other() {
        let access = keyed("# rooms\nnamed/kitchen k1\n\nnamed/hall k1\ndm/ann k2\n").unwrap();
        let opens = |key, asked| access.scope(&shown(key), asked);
        assert_eq!(opens("Bearer k1", Some(named("kitchen"))), Ok(named("kitchen")));
        assert_eq!(opens("bearer k1", Some(named("hall"))), Ok(named("hall")));
        assert_eq!(opens("Bearer k1", None), Ok(named("kitchen")));
        let ann = Scope::Dm { user: "ann".into() };
        assert_eq!(opens("Bearer k2", None), Ok(ann.clone()));
        assert_eq!(opens("Bearer k1", Some(ann)), Err(Refusal::OtherScope));
        assert_eq!(opens("Bearer k1", Some(Scope::Default)), Err(Refusal::OtherScope));
        assert_eq!(opens("Bearer k3", None), Err(Refusal::NoKey));
        assert_eq!(opens("k1", None), Err(Refusal::NoKey));
        assert_eq!(access.scope(&HeaderMap::new(), None), Err(Refusal::NoKey));
    }

    #[test]
    fn a_file_of_keys_without_a_key_opens_nothing() {
        for lines in ["", "\n\n", "# named/kitchen k1\n", "  \n\t# x"] {
            assert!(matches!(keyed(lines), Err(KeysError::Empty { .. })), "{lines:?}");
        }
    }

    #[test]
    fn a_key_for_many_people_opens_the_conversation_of_the_one_that_the_request_names() {
        let access = keyed("dm/* k1\ndm/ann k2\n").unwrap();
        let opens = |key, user: Option<&'static str>, asked| {
            let mut headers = shown(key);
            if let Some(user) = user {
                headers.insert("x-openwebui-user-id", HeaderValue::from_static(user));
            }
            access.scope(&headers, asked)
        };
        let of = |user: &str| Scope::Dm { user: user.into() };
        assert_eq!(opens("Bearer k1", Some("ann"), None), Ok(of("ann")));
        assert_eq!(opens("Bearer k1", Some("ben"), None), Ok(of("ben")));
        assert_eq!(opens("Bearer k1", Some("ben"), Some(of("ben"))), Ok(of("ben")));
        assert_eq!(opens("Bearer k1", Some("ben"), Some(of("ann"))), Err(Refusal::OtherScope));
        assert_eq!(opens("Bearer k1", Some("ben"), Some(Scope::Default)), Err(Refusal::OtherScope));
        assert_eq!(opens("Bearer k1", None, None), Err(Refusal::NoUser));
        assert_eq!(opens("Bearer k1", Some("../ann"), None), Err(Refusal::NoUser));
        assert_eq!(opens("Bearer k1", None, Some(of("ann"))), Err(Refusal::NoUser));
        assert_eq!(opens("Bearer k2", Some("ben"), None), Ok(of("ann")), "only its own counts");
        assert_eq!(opens("Bearer k3", Some("ann"), None), Err(Refusal::NoKey));
        let token = Access::new(Some(Zeroizing::new("t".into()))).unnamed(named("hall"));
        let mut headers = shown("Bearer t");
        headers.insert("x-openwebui-user-id", HeaderValue::from_static("ann"));
        assert_eq!(token.scope(&headers, None), Ok(named("hall")));
        assert_eq!(Access::default().scope(&headers, None), Ok(Scope::Default));
        for mixed in ["dm/* k1\ndm/ann k1", "named/hall k1\ndm/* k1", "dm/* k1\ndm/* k1"] {
            assert!(keyed(mixed).is_err(), "{mixed}");
        }
    }

    #[test]
    fn no_error_and_no_debug_output_shows_a_key() {
        for lines in ["kitchen secret", "named/kitchen secret more", "named/kitchen", "secret"] {
            let error = keyed(lines).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        }
        let access = keyed("named/kitchen secret").unwrap();
        assert!(!format!("{access:?}").contains("secret"));
    }
}
