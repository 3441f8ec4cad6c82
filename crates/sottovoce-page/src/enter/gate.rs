//! The one-time link, the sessions of browsers, and their locks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::COOKIE;
use zeroize::Zeroizing;

use super::secret::{Secret, same};

/// The most browsers that are let in at once. One more ends the session that was used longest ago.
const SESSIONS: usize = 16;
/// How long a wrong passphrase or token delays the next attempt.
const DELAY: Duration = Duration::from_secs(1);

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Gate {
    token: Option<Zeroizing<String>>,
    /// How long a session may be idle.
    idle: Option<Duration>,
    inside: Mutex<Inside>,
    /// Held while an attempt is made.
    attempt: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inside {
    link: Option<Secret>,
    sessions: Vec<Session>,
    /// Whether a session was open since [`Gate::lock_idle`] last told that none is.
    was_open: bool,
}

#[derive(Debug)]
struct Session {
    id: Secret,
    csrf: Secret,
    used: Instant,
    is_locked: bool,
}

/// What a request's cookie is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The browser is let in. Forms of its pages hold this text.
    Open { csrf: String },
    /// It was let in, and has been idle too long.
    Locked { csrf: String },
    /// It is unknown.
    Closed,
}

impl Gate {
    pub(crate) fn new(
        token: Option<Zeroizing<String>>,
        idle: Option<Duration>,
    ) -> Result<Self, getrandom::Error> {
        // Fails here rather than at the first request, if there is no randomness.
        Secret::new()?;
        Ok(Self { token, idle, inside: Mutex::default(), attempt: tokio::sync::Mutex::default() })
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The secret of a new link. Links that were made before it are void.
    pub(crate) fn new_link(&self) -> Result<String, getrandom::Error> {
        let secret = Secret::new()?;
        let text = secret.text().to_owned();
        self.inside().link = Some(secret);
        Ok(text)
    }

    /// Lets a browser in with a link's secret, once. Returns the text of its cookie.
    pub(crate) fn enter(&self, shown: &str) -> Option<String> {
        let mut inside = self.inside();
        inside.link.take_if(|link| link.is(shown))?;
        inside.admit()
    }

    /// Lets a browser in with the token. Returns the text of its cookie.
    pub(crate) async fn enter_with_token(&self, shown: &str) -> Option<String> {
        let _attempt = self.attempt.lock().await;
        let is_right = self.token.as_ref().is_some_and(|token| same(token, shown));
        if !is_right {
            tokio::time::sleep(DELAY).await;
            return None;
        }
        self.inside().admit()
    }

    /// Makes an attempt at something that could be guessed. Only one is made at a time, and a wrong one delays the next.
    pub(crate) async fn attempt<T, E>(
        &self,
        attempt: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let _attempt = self.attempt.lock().await;
        let done = attempt.await;
        if done.is_err() {
            tokio::time::sleep(DELAY).await;
        }
        done
    }

    /// What a request may do. A request of the owner's keeps the session from locking; what a page asks by itself does not.
    pub(crate) fn entry(&self, headers: &HeaderMap, of_owner: bool) -> Entry {
        let mut inside = self.inside();
        let idle = self.idle;
        let Some(session) = inside.find(headers) else { return Entry::Closed };
        session.lock_if_idle(idle);
        let csrf = session.csrf.text().to_owned();
        if session.is_locked {
            return Entry::Locked { csrf };
        }
        if of_owner {
            session.used = Instant::now();
        }
        Entry::Open { csrf }
    }

    /// Unlocks the session of a request.
    pub(crate) fn unlock(&self, headers: &HeaderMap) {
        if let Some(session) = self.inside().find(headers) {
            session.is_locked = false;
            session.used = Instant::now();
        }
        self.inside().was_open = true;
    }

    /// Locks every session.
    pub(crate) fn lock(&self) {
        self.inside().sessions.iter_mut().for_each(|session| session.is_locked = true);
    }

    /// Locks what has been idle too long. Returns whether the last open session was locked since the last call.
    pub(crate) fn lock_idle(&self) -> bool {
        let mut inside = self.inside();
        let idle = self.idle;
        inside.sessions.iter_mut().for_each(|session| session.lock_if_idle(idle));
        !inside.is_open() && std::mem::take(&mut inside.was_open)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn admit(&mut self) -> Option<String> {
        let (id, csrf) = (Secret::new().ok()?, Secret::new().ok()?);
        let cookie = id.text().to_owned();
        if self.sessions.len() >= SESSIONS {
            let oldest = self.sessions.iter().enumerate().min_by_key(|(_, session)| session.used);
            if let Some((oldest, _)) = oldest {
                self.sessions.swap_remove(oldest);
            }
        }
        self.was_open = true;
        self.sessions.push(Session { id, csrf, used: Instant::now(), is_locked: false });
        Some(cookie)
    }

    fn is_open(&self) -> bool {
        self.sessions.iter().any(|session| !session.is_locked)
    }

    fn find(&mut self, headers: &HeaderMap) -> Option<&mut Session> {
        let shown: Vec<&str> = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(name, _)| *name == PLAIN || *name == OVER_TLS)
            .map(|(_, value)| value)
            .collect();
        self.sessions.iter_mut().find(|session| shown.iter().any(|shown| session.id.is(shown)))
    }
}

impl Session {
    fn lock_if_idle(&mut self, idle: Option<Duration>) {
        self.is_locked |= idle.is_some_and(|idle| self.used.elapsed() >= idle);
    }
}

const PLAIN: &str = "sottovoce";
const OVER_TLS: &str = "__Host-sottovoce";

/// The header that gives a browser its cookie, which ends with the browser or with this run.
pub(crate) fn cookie(value: &str, is_tls: bool) -> String {
    let (name, more) = if is_tls { (OVER_TLS, "; Secure") } else { (PLAIN, "") };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cookie: &str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, format!("a=b; sottovoce={cookie}").parse().unwrap())])
    }

    #[test]
    fn a_link_lets_one_browser_in_and_a_wrong_or_older_one_nobody() {
        let gate = Gate::new(None, None).unwrap();
        assert_eq!(gate.enter(""), None);
        let old = gate.new_link().unwrap();
        let link = gate.new_link().unwrap();
        assert_eq!(gate.enter(&old), None);
        assert_eq!(gate.enter("wrong"), None);
        let cookie = gate.enter(&link).unwrap();
        assert_eq!(gate.enter(&link), None, "used once");
        assert!(matches!(gate.entry(&with(&cookie), true), Entry::Open { .. }));
        assert_eq!(gate.entry(&with(&link), true), Entry::Closed);
        assert_eq!(gate.entry(&HeaderMap::new(), true), Entry::Closed);
    }

    #[test]
    fn what_a_page_asks_by_itself_does_not_keep_it_from_locking() {
        let gate = Gate::new(None, Some(Duration::from_millis(60))).unwrap();
        let cookie = gate.enter(&gate.new_link().unwrap()).unwrap();
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(20));
            gate.entry(&with(&cookie), false);
        }
        assert!(matches!(gate.entry(&with(&cookie), true), Entry::Locked { .. }));
        assert!(gate.lock_idle(), "whoever finds it locked first");
        assert!(!gate.lock_idle(), "told once");
        gate.unlock(&with(&cookie));
        assert!(matches!(gate.entry(&with(&cookie), true), Entry::Open { .. }));
    }

    #[test]
    fn no_more_browsers_than_the_limit_are_inside() {
        let gate = Gate::new(None, None).unwrap();
        let cookies: Vec<String> =
            (0..=SESSIONS).map(|_| gate.enter(&gate.new_link().unwrap()).unwrap()).collect();
        let open = cookies.iter().filter(|cookie| gate.entry(&with(cookie), true) != Entry::Closed);
        assert_eq!(open.count(), SESSIONS);
    }
}
