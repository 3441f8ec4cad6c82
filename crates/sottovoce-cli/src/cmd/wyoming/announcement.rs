//! The announcement of the agent in the local network, by which Home Assistant finds it.

use std::net::SocketAddr;
use std::time::Duration;

use mdns_sd::{Error, IfKind, ServiceDaemon, ServiceInfo};
use sottovoce::with_causes;

use crate::exit::Failure;

const SERVICE: &str = "_wyoming._tcp.local.";
/// How long the withdrawal may take.
const LAST: Duration = Duration::from_secs(1);

/// An announcement that stands until it is withdrawn.
pub(crate) struct Announcement {
    daemon: ServiceDaemon,
    /// The full names of what is announced.
    names: Vec<String>,
}

impl Announcement {
    /// Announces the addresses that other machines can reach.
    pub(crate) fn make(addresses: impl Iterator<Item = SocketAddr>) -> Result<Self, Failure> {
        let addresses: Vec<_> = addresses.filter(|address| !address.ip().is_loopback()).collect();
        if addresses.is_empty() {
            let what = "the agent cannot be announced: no other machine can reach its addresses";
            let help = "name one with --addr or in Wyoming.Addresses, and who may connect in Wyoming.Allow";
            return Err(Failure::input(what, help));
        }
        Self::try_make(&addresses).map_err(|error| {
            let what = format!("the agent cannot be announced: {}", with_causes(&error));
            Failure::input(what, "turn Wyoming.Announce off, or look at the network")
        })
    }

    fn try_make(addresses: &[SocketAddr]) -> Result<Self, Error> {
        let daemon = ServiceDaemon::new()?;
        daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?;
        if addresses.iter().all(SocketAddr::is_ipv4) {
            daemon.disable_interface(IfKind::IPv6)?;
        }
        let machine = machine();
        let mut names = Vec::new();
        for address in addresses {
            let mut name = format!("sottovoce on {machine}");
            if addresses.len() > 1 {
                name = format!("{name}, port {}", address.port());
            }
            let host = format!("{machine}.local.");
            let none: Option<std::collections::HashMap<String, String>> = None;
            let service = match address.ip().is_unspecified() {
                true => ServiceInfo::new(SERVICE, &name, &host, "", address.port(), none)?
                    .enable_addr_auto(),
                false => {
                    ServiceInfo::new(SERVICE, &name, &host, address.ip(), address.port(), none)?
                }
            };
            names.push(service.get_fullname().to_owned());
            daemon.register(service)?;
        }
        Ok(Self { daemon, names })
    }

    /// Tells the network that the agent is gone.
    pub(crate) async fn withdraw(self) {
        let withdrawn = tokio::task::spawn_blocking(move || {
            for name in &self.names {
                if let Ok(ended) = self.daemon.unregister(name) {
                    let _ = ended.recv_timeout(LAST);
                }
            }
            let _ = self.daemon.shutdown();
        });
        drop(withdrawn.await);
    }
}

/// This machine's name, without its domain.
fn machine() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("localhost").to_owned()
}
