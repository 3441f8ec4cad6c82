//! Decides whether an address belongs to a nearby machine.

use std::net::{Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Top-level names that public servers cannot have.
const OWN: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// Whether an address belongs to this machine or the local network: a loopback, private or link-local number, a name
/// without dots, or one below `localhost`, `local`, `internal` or `home.arpa`. Any other may be anyone's.
pub(super) fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<Ipv4Addr>() {
        return is_near_v4(address);
    }
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return address.to_ipv4_mapped().map_or_else(
            || {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unique_local()
                    || address.is_unicast_link_local()
            },
            is_near_v4,
        );
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_own = |own: &str| name.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'));
    !name.is_empty() && (!name.contains('.') || OWN.into_iter().any(is_own))
}

fn is_near_v4(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_private()
        || address.is_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machines_nearby_are_near() {
        let near = |host: &str| is_near(&Url::parse(&format!("http://{host}:1/v1")).unwrap());
        for host in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.9",
            "169.254.1.1",
            "[::1]",
            "[fe80::1]",
            "[fd00::1]",
            "[::ffff:10.0.0.1]",
            "localhost",
            "LOCALHOST.",
            "nas",
            "nas.local",
            "a.b.local.",
            "host.docker.internal",
            "nas.home.arpa",
            "2130706433",
        ] {
            assert!(near(host), "{host}");
        }
        for host in [
            "api.openai.com",
            "8.8.8.8",
            "172.32.0.1",
            "100.64.0.1",
            "[2001:db8::1]",
            "[::ffff:8.8.8.8]",
            "notlocal.com",
            "local.example.com",
            "localhost.example.com",
            "xlocal.de",
            "home.arpa.net",
            "134744072",
        ] {
            assert!(!near(host), "{host}");
        }
    }
}
