//! Who may ask: by which names of the server, and with which token

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::origin;

/// The names of this machine that clients on it use.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The names by which clients reach a server, besides those of loopback and the address that it listens on, and the origins of
/// other programs and pages that may ask.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Each as it was given, and without port and brackets.
    hosts: Vec<(String, String)>,
    origins: Vec<String>,
}

/// What a request names that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// A name of the server.
    Host,
    /// The page or program that asks.
    Origin,
}

impl Names {
    /// Allows these host names too, and these origins, such as `https://chat.example` and `chrome-extension://*`.
    pub fn add(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names.into_iter().map(|name| name.to_lowercase()) {
            match name.contains("://") {
                true => self.origins.push(name.trim_end_matches('/').to_owned()),
                false => self.hosts.push((name.clone(), host_name(&name))),
            }
        }
    }

    /// The first host of those that were added.
    pub fn first(&self) -> Option<&str> {
        self.hosts.first().map(|(given, _)| given.as_str())
    }

    /// Whether a host, with a port or without, is a name of the server that listens at this address.
    pub fn has(&self, host: &str, listening: IpAddr) -> bool {
        let host = host_name(host);
        LOOPBACK.contains(&&*host)
            || self.hosts.iter().any(|(_, name)| *name == host)
            || (!listening.is_unspecified() && host.parse() == Ok(listening))
    }

    /// Checks the names by which a client reached the server, so that no web page reaches it through a domain name that
    /// resolves to this machine. Whoever must show a token may use any name of a machine whose names are not known.
    ///
    /// # Errors
    /// Which of both is not allowed.
    pub fn check(
        &self,
        headers: &HeaderMap,
        listening: IpAddr,
        needs_token: bool,
    ) -> Result<(), Foreign> {
        let is_ours = |origin: &str| {
            let origin = origin.to_lowercase();
            origin.split_once("://").is_some_and(|(_, host)| self.has(host, listening))
                || origin::is_local(&origin)
                || self.origins.iter().any(|pattern| origin::matches(pattern, &origin))
        };
        if headers.get(ORIGIN).is_some_and(|origin| !origin.to_str().is_ok_and(is_ours)) {
            return Err(Foreign::Origin);
        }
        if listening.is_unspecified() && self.hosts.is_empty() && needs_token {
            return Ok(());
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        // A number is nobody's domain name.
        let is_ours = host.is_some_and(|host| {
            host_name(host).parse::<IpAddr>().is_ok() || self.has(host, listening)
        });
        is_ours.then_some(()).ok_or(Foreign::Host)
    }
}

/// A host without its port and brackets, in lower case.
fn host_name(host: &str) -> String {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None if host.parse::<Ipv6Addr>().is_ok() => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.to_lowercase()
}

/// A bearer token. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

impl Token {
    /// A token with this text.
    pub fn new(text: Zeroizing<String>) -> Self {
        Self(Arc::new(text))
    }

    /// Whether there is nothing in it, so that it protects nothing.
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// Whether this text is the token.
    pub fn is(&self, shown: &str) -> bool {
        same(self.0.as_bytes(), shown.as_bytes())
    }

    /// Whether a request shows the token.
    pub fn is_shown(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|shown| self.is(shown))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(redacted)")
    }
}

/// What a request shows as `Authorization: Bearer …`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, shown) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(shown.trim())
}

/// Whether two secrets are the same, in a time that does not tell how much of them is.
pub fn same(secret: &[u8], shown: &[u8]) -> bool {
    secret.ct_eq(shown).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(name: http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn only_the_very_token_is_let_in_and_no_debug_output_shows_it() {
        let token = Token::new("open sesame".to_owned().into());
        let shown = |value: &'static str| token.is_shown(&with(AUTHORIZATION, value));
        assert!(shown("Bearer open sesame") && shown("bearer open sesame"));
        for wrong in
            ["Bearer open sesam", "Bearer open sesame2", "Basic open sesame", "open sesame", ""]
        {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
        assert!(!token.is_blank() && Token::new(" \t\n".to_owned().into()).is_blank());
        assert!(!format!("{token:?}").contains("sesame"));
    }

    #[test]
    fn a_web_page_does_not_reach_the_server_through_its_own_domain_name() {
        let mut names = Names::default();
        names.add(["Pi.local", "fd00::2"].map(str::to_owned));
        assert_eq!((names.first(), Names::default().first()), (Some("pi.local"), None));
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        names.add(["https://Chat.example/", "chrome-extension://*"].map(str::to_owned));
        let check = |headers: &HeaderMap| names.check(headers, loopback, false).is_ok();
        for good in [
            "localhost:11435",
            "127.0.0.1",
            "[::1]:11435",
            "pi.local:11435",
            "PI.local",
            "192.168.1.4",
            "[fd00::2]:11435",
        ] {
            assert!(check(&with(HOST, good)), "{good}");
        }
        for bad in ["evil.example:11435", "", "127.0.0.1.evil.example", "localhost.evil.example"] {
            assert!(!check(&with(HOST, bad)), "{bad}");
        }
        assert!(!check(&HeaderMap::new()));
        assert!(names.has("FD00::2", loopback) && !names.has("fd00::3", loopback));
        let mut foreign = with(HOST, "localhost");
        for (origin, is_ours) in [
            ("https://evil.example", false),
            ("null", false),
            ("http://pi.local:8080", true),
            ("https://chat.example", true),
            ("https://chat.example.evil.example", false),
            ("http://chat.example", false),
            ("chrome-extension://abcdef", true),
            ("moz-extension://abcdef", false),
            ("app://obsidian.md", true),
            ("vscode-webview://abc", true),
            ("https://app://obsidian.md", false),
        ] {
            foreign.insert(ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(check(&foreign), is_ours, "{origin}");
        }
        assert_eq!(names.check(&foreign, loopback, false), Err(Foreign::Origin));
    }

    #[test]
    fn a_machine_whose_names_are_not_known_is_reached_by_any_of_them_with_a_token() {
        let every: IpAddr = "0.0.0.0".parse().unwrap();
        let headers = with(HOST, "evil.example");
        assert_eq!(Names::default().check(&headers, every, true), Ok(()));
        assert_eq!(Names::default().check(&headers, every, false), Err(Foreign::Host));
    }
}
