//! The one-time link, the sessions of browsers, and their locks.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::COOKIE;
use sottovoce_net::{Token, lock};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use super::secret::Secret;

/// The most browsers that are let in at once. One more ends the session that was used longest ago.
const SESSIONS: usize = 16;
/// How long the answer to a wrong token takes, and how long a wrong passphrase delays the next one.
const DELAY: Duration = Duration::from_secs(1);
/// The most wrong tokens whose answers are delayed at once. One more is refused at once.
const GUESSES: usize = 32;

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Gate {
    token: Option<Token>,
    /// How long a session may be idle.
    idle: Option<Duration>,
    inside: Mutex<Inside>,
    /// Held while a passphrase is tried.
    attempt: tokio::sync::Mutex<()>,
    guesses: Semaphore,
}

/// Too many wrong tokens wait for their answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyGuesses;

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
        let (inside, attempt, guesses) =
            (Mutex::default(), <_>::default(), Semaphore::new(GUESSES));
        let token = token.map(Token::new);
        Ok(Self { token, idle, inside, attempt, guesses })
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The secret of a new link. Links that were made before it are void.
    pub(crate) fn new_link(&self) -> Result<String, getrandom::Error> {
        let secret = Secret::new()?;
        let text = secret.text().to_owned();
        lock(&self.inside).link = Some(secret);
        Ok(text)
    }

    /// The secret of a new link, unless there is one that was not used yet.
    pub(crate) fn next_link(&self) -> Result<Option<String>, getrandom::Error> {
        let secret = Secret::new()?;
        let mut inside = lock(&self.inside);
        if inside.link.is_some() {
            return Ok(None);
        }
        Ok(Some(inside.link.insert(secret).text().to_owned()))
    }

    /// Lets a browser in with a link's secret, once. Returns the text of its cookie.
    pub(crate) fn enter(&self, shown: &str) -> Option<String> {
        let mut inside = lock(&self.inside);
        inside.link.take_if(|link| link.is(shown))?;
        inside.admit()
    }

    /// Lets a browser in with the token. Returns the text of its cookie. The right token never waits for wrong ones.
    pub(crate) async fn enter_with_token(
        &self,
        shown: &str,
    ) -> Result<Option<String>, TooManyGuesses> {
        if self.token.as_ref().is_some_and(|token| token.is(shown)) {
            return Ok(lock(&self.inside).admit());
        }
        let _guess = self.guesses.try_acquire().map_err(|_| TooManyGuesses)?;
        tokio::time::sleep(DELAY).await;
        Ok(None)
    }

    /// Tries a passphrase. Only one is tried at a time, and a wrong one delays the next.
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
        let mut inside = lock(&self.inside);
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
        if let Some(session) = lock(&self.inside).find(headers) {
            session.is_locked = false;
            session.used = Instant::now();
        }
        lock(&self.inside).was_open = true;
    }

    /// Locks every session.
    pub(crate) fn lock(&self) {
        lock(&self.inside).sessions.iter_mut().for_each(|session| session.is_locked = true);
    }

    /// Locks what has been idle too long. Returns whether the last open session was locked since the last call.
    pub(crate) fn lock_idle(&self) -> bool {
        let mut inside = lock(&self.inside);
        let idle = self.idle;
        inside.sessions.iter_mut().for_each(|session| session.lock_if_idle(idle));
        !inside.is_open() && std::mem::take(&mut inside.was_open)
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
    use futures_util::FutureExt;

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
    fn a_link_that_was_not_used_yet_stays_the_only_one() {
        let gate = Gate::new(None, None).unwrap();
        let link = gate.next_link().unwrap().unwrap();
        assert_eq!(gate.next_link().unwrap(), None);
        assert!(gate.enter(&link).is_some());
        assert!(gate.next_link().unwrap().is_some_and(|next| next != link));
    }

    #[tokio::test]
    async fn the_right_token_waits_for_no_wrong_one_and_few_wrong_ones_wait() {
        let gate = Gate::new(Some(Zeroizing::new("right".to_owned())), None).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..GUESSES {
            let mut guess = Box::pin(gate.enter_with_token("wrong"));
            assert_eq!((&mut guess).now_or_never(), None, "it waits");
            waiting.push(guess);
        }
        assert_eq!(gate.enter_with_token("wrong").now_or_never(), Some(Err(TooManyGuesses)));
        let entered = gate.enter_with_token("right").now_or_never().unwrap();
        assert!(matches!(entered, Ok(Some(_))));
        drop(waiting);
        assert_eq!(gate.enter_with_token("wrong").now_or_never(), None, "others left");
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
