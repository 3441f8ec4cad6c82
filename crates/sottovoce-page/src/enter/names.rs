//! The names by which browsers reach this server, so that no other web page uses it through its own name or from its own origin.

use std::net::SocketAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// The names of this server.
#[derive(Debug)]
pub(crate) struct Names {
    address: SocketAddr,
    is_tls: bool,
    known: sottovoce_net::Names,
}

/// Why a request is refused before anything else is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// The host name is not one of this server's.
    Host,
    /// Another web page asks.
    Origin,
}

impl Names {
    pub(crate) fn new(address: SocketAddr, is_tls: bool, hosts: Vec<String>) -> Self {
        let mut known = sottovoce_net::Names::default();
        known.add(hosts);
        Self { address, is_tls, known }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The address of the first page, as this machine or the first allowed name reaches it.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let host = match self.known.first() {
            Some(host) if !self.address.ip().is_loopback() => host.to_owned(),
            _ if self.address.is_ipv6() => format!("[{}]", self.address.ip()),
            _ => self.address.ip().to_string(),
        };
        format!("{scheme}://{host}:{}", self.address.port())
    }

    /// Checks `Host`, `Origin` and what the browser tells about who asks. A link may stand on any page: its secret is enough.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        changes: bool,
        is_link: bool,
    ) -> Result<(), NotOurs> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).ok_or(NotOurs::Host)?;
        if !self.known.has(host, self.address.ip()) {
            return Err(NotOurs::Host);
        }
        let scheme = if self.is_tls { "https" } else { "http" };
        match headers.get(ORIGIN).map(|origin| origin.to_str()) {
            Some(Ok(origin)) if origin == format!("{scheme}://{host}") => {}
            Some(_) => return Err(NotOurs::Origin),
            // Browsers name the origin of every request that changes something.
            None if changes => return Err(NotOurs::Origin),
            None => {}
        }
        match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) if is_link && is_opened(headers) => Ok(()),
            Some(_) => Err(NotOurs::Origin),
        }
    }
}

/// Whether the browser opens the address as a page, and not as a part of another one.
fn is_opened(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-dest").is_some_and(|dest| dest == "document")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn names() -> Names {
        Names::new("127.0.0.1:7766".parse().unwrap(), false, vec!["Pi.local".to_owned()])
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        all.iter().map(header).collect()
    }

    #[test]
    fn no_other_name_reaches_the_page() {
        for good in ["localhost:7766", "127.0.0.1:7766", "[::1]:7766", "PI.local", "pi.local:1"] {
            assert_eq!(names().check(&headers(&[("host", good)]), false, false), Ok(()), "{good}");
        }
        for bad in ["evil.example:7766", "", "127.0.0.1.evil.example", "192.168.1.4", "0.0.0.0"] {
            let refused = names().check(&headers(&[("host", bad)]), false, false);
            assert_eq!(refused, Err(NotOurs::Host), "{bad}");
        }
        assert_eq!(names().check(&HeaderMap::new(), false, false), Err(NotOurs::Host));
    }

    #[test]
    fn no_other_page_changes_or_reads_anything() {
        let host = ("host", "localhost:7766");
        let check = |more: &[(&'static str, &'static str)], changes| {
            names().check(&headers(&[&[host], more].concat()), changes, false)
        };
        assert_eq!(check(&[("origin", "http://localhost:7766")], true), Ok(()));
        assert_eq!(check(&[], true), Err(NotOurs::Origin), "no browser leaves it out");
        for bad in [
            "null",
            "http://evil.example",
            "https://localhost:7766",
            "http://localhost:8000",
            "http://127.0.0.1:7766",
        ] {
            assert_eq!(check(&[("origin", bad)], false), Err(NotOurs::Origin), "{bad}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(check(&[("sec-fetch-site", site)], false), Err(NotOurs::Origin), "{site}");
        }
        assert_eq!(check(&[("sec-fetch-site", "none")], false), Ok(()));
    }
}
