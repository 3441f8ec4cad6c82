//! Links: what members give each other, so that the server never sees a key

use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sottovoce_team_api::{Id, Secret};
use url::Url;
use zeroize::Zeroizing;

use crate::error::TeamError;

/// The bytes of a checksum.
const CHECKSUM: usize = 4;

/// What precedes the token in a link that begins a team.
const START: &str = "start:";

/// The version of links.
const VERSION: u64 = 1;

/// A link: whoever has its text can do what it is for. `Debug` shows no key.
///
/// The text is the server's address, `/#`, and either `start:` and a token that begins a team, or JSON with a checksum in base64url. Browsers do
/// not send what follows `#`, but nobody should open a link in one.
#[derive(Clone)]
pub struct Link {
    pub(crate) address: String,
    pub(crate) kind: Kind,
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// Begins a team, with the token of the server's operator.
    Start(Secret),
    /// Lets somebody into a team, or into more of its conversations.
    Team(Box<Given>),
}

/// What a link gives.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    v: u64,
    pub(crate) team: Id,
    pub(crate) name: String,
    /// The key of members' names.
    pub(crate) key: Secret,
    /// Makes a new member, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) invitation: Option<Secret>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conversations: Vec<GivenConversation>,
}

/// A conversation with its keys, the oldest first.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenConversation {
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) keys: Vec<Secret>,
}

impl Given {
    pub(crate) fn new(
        (team, name): (Id, String),
        key: Secret,
        invitation: Option<Secret>,
        conversations: Vec<GivenConversation>,
    ) -> Self {
        Self { v: VERSION, team, name, key, invitation, conversations }
    }
}

impl Link {
    /// A link that begins a team at a server, with its operator's token.
    pub fn start(address: impl Into<String>, operator: Secret) -> Self {
        Self { address: address.into(), kind: Kind::Start(operator) }
    }

    pub(crate) fn given(address: String, given: Given) -> Self {
        Self { address, kind: Kind::Team(Box::new(given)) }
    }

    /// The text, for whom it is meant alone.
    pub fn reveal(&self) -> Zeroizing<String> {
        let secret = match &self.kind {
            Kind::Start(operator) => Zeroizing::new(format!("{START}{}", &*operator.reveal())),
            Kind::Team(given) => {
                let mut bytes = Zeroizing::new(serde_json::to_vec(given).unwrap_or_default());
                let checksum = self.checksum(&bytes);
                bytes.extend(checksum);
                Zeroizing::new(BASE64URL_NOPAD.encode(&bytes))
            }
        };
        Zeroizing::new(format!("{}/#{}", self.address, &*secret))
    }

    /// The server's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The team's name; `None` for a link that begins one.
    pub fn team(&self) -> Option<&str> {
        match &self.kind {
            Kind::Start(_) => None,
            Kind::Team(given) => Some(&given.name),
        }
    }

    fn checksum(&self, bytes: &[u8]) -> [u8; CHECKSUM] {
        let digest = Sha256::new().chain_update(self.address.as_bytes()).chain_update(bytes);
        let [a, b, c, d, ..]: [u8; 32] = digest.finalize().into();
        [a, b, c, d]
    }
}

/// Accepts white space within the text.
impl FromStr for Link {
    type Err = TeamError;

    fn from_str(text: &str) -> Result<Self, TeamError> {
        let wrong = |reason| TeamError::InvalidLink { reason };
        let text: Zeroizing<String> =
            Zeroizing::new(text.chars().filter(|c| !c.is_whitespace()).collect());
        let (address, secret) = text.split_once('#').ok_or(wrong("it has no #"))?;
        let address = address.trim_end_matches('/').to_owned();
        check_address(&address).map_err(wrong)?;
        if let Some(operator) = secret.strip_prefix(START) {
            let operator = operator.parse().map_err(|_| wrong("it was mistyped or cut off"))?;
            return Ok(Self::start(address, operator));
        }
        let bytes = BASE64URL_NOPAD.decode(secret.as_bytes()).map(Zeroizing::new);
        let bytes =
            bytes.map_err(|_| wrong("it has characters that no link has, or is cut off"))?;
        let length = bytes.len().saturating_sub(CHECKSUM);
        let (json, checksum) = bytes.split_at_checked(length).unwrap_or_default();
        let given: Given =
            serde_json::from_slice(json).map_err(|_| wrong("it was mistyped or cut off"))?;
        if given.v != VERSION {
            return Err(wrong("another version of this program made it"));
        }
        let link = Self::given(address, given);
        match link.checksum(json) == checksum {
            true => Ok(link),
            false => Err(wrong("it was mistyped")),
        }
    }
}

/// Refuses an address that would show words or tokens to the network.
pub(crate) fn check_address(address: &str) -> Result<(), &'static str> {
    let url = Url::parse(address).map_err(|_| "it does not begin with the server's address")?;
    let is_here = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err("the server's address has a user, a password or a query");
    }
    match url.scheme() {
        "https" if cfg!(feature = "tls") => Ok(()),
        "https" => Err("this build speaks no HTTPS"),
        "http" if is_here => Ok(()),
        "http" => Err("a server beyond this machine must have an https:// address"),
        _ => Err("the server's address is neither http:// nor https://"),
    }
}

sottovoce::debug_shows!(Link: address);

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        let secret = || Secret::random().unwrap();
        let conversations = vec![GivenConversation {
            id: Id::random().unwrap(),
            name: "plans".to_owned(),
            keys: vec![secret(), secret()],
        }];
        let team = (Id::random().unwrap(), "Acme".to_owned());
        let given = Given::new(team, secret(), Some(secret()), conversations);
        Link::given("https://team.example:8473".to_owned(), given)
    }

    #[test]
    fn a_link_is_read_back_also_when_a_mail_program_broke_it_into_lines() {
        let text = link().reveal();
        assert_eq!(*text.parse::<Link>().unwrap().reveal(), *text);
        let (front, back) = text.split_at(60);
        assert_eq!(*format!(" {front}\r\n {back}\n").parse::<Link>().unwrap().reveal(), *text);
        let start = Link::start("http://127.0.0.1:8473", Secret::random().unwrap());
        assert_eq!(*start.reveal().parse::<Link>().unwrap().reveal(), *start.reveal());
    }

    #[test]
    fn a_mistyped_or_cut_link_is_refused() {
        let text = link().reveal();
        for (at, _) in text.char_indices() {
            let mut typed = text.to_string();
            let other = if text.as_bytes().get(at) == Some(&b'x') { "y" } else { "x" };
            typed.replace_range(at..=at, other);
            assert!(typed.parse::<Link>().is_err(), "{at}");
            assert!(text.split_at(at).0.parse::<Link>().is_err(), "{at}");
        }
    }

    #[test]
    fn an_address_that_others_on_the_network_could_read_along_is_refused() {
        for address in ["https://team.example", "http://127.0.0.1:8473", "http://[::1]:80"] {
            assert_eq!(check_address(address), Ok(()), "{address}");
        }
        for address in ["http://team.example", "ftp://x", "https://a:b@team.example", "team", ""] {
            assert!(check_address(address).is_err(), "{address}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let link = link();
        let Kind::Team(given) = &link.kind else { return };
        let shown = format!("{link:?}");
        assert!(!shown.contains(given.key.reveal().as_str()) && !shown.contains("keys"));
    }
}
