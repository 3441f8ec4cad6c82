//! Who may speak to the agent. The protocol knows no passwords.

use std::net::{IpAddr, SocketAddr};

/// The addresses that may connect, besides this machine's own.
#[derive(Debug, Clone, Default)]
pub struct Access {
    pub(crate) allowed: Vec<IpAddr>,
}

impl Access {
    /// Lets these machines connect too.
    #[must_use]
    pub fn allow(mut self, machines: impl IntoIterator<Item = IpAddr>) -> Self {
        self.allowed.extend(machines.into_iter().map(|machine| machine.to_canonical()));
        self
    }

    pub(crate) fn admits(&self, peer: SocketAddr) -> bool {
        let machine = peer.ip().to_canonical();
        machine.is_loopback() || self.allowed.contains(&machine)
    }
}
