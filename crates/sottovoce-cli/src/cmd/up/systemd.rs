//! Tells systemd how the process is, if systemd has started it as `Type=notify`.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::output;

/// Tells that the process is ready, then that it is alive as often as the unit wants it, and that it stops once `stop` is
/// cancelled. Returns when `done` is cancelled.
pub(super) async fn notify(stop: CancellationToken, done: CancellationToken) {
    let Some(notifier) = Notifier::of_environment() else { return };
    notifier.tell("READY=1");
    let alive = async {
        let Some(every) = watchdog() else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(every);
        loop {
            ticks.tick().await;
            notifier.tell("WATCHDOG=1");
        }
    };
    let stopping = async {
        stop.cancelled().await;
        notifier.tell("STOPPING=1");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        // When both have come, that the process stops is told first.
        biased;
        () = stopping => {}
        () = alive => {}
        () = done.cancelled() => {}
    }
}

/// Half of the time after which systemd takes a silent process for dead.
fn watchdog() -> Option<Duration> {
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let is_meant = match std::env::var("WATCHDOG_PID") {
        Ok(pid) => pid == std::process::id().to_string(),
        Err(_) => true,
    };
    (is_meant && micros > 1).then(|| Duration::from_micros(micros / 2))
}

struct Notifier(UnixDatagram);

impl Notifier {
    fn of_environment() -> Option<Self> {
        let address = std::env::var_os("NOTIFY_SOCKET")?;
        let socket = UnixDatagram::unbound().ok()?;
        connect(&socket, &address).ok()?;
        // A full queue must not hold the process up.
        socket.set_nonblocking(true).ok()?;
        Some(Self(socket))
    }

    fn tell(&self, state: &str) {
        if let Err(error) = self.0.send(state.as_bytes()) {
            output::warning(&format!("could not tell systemd {state}: {error}"));
        }
    }
}

/// An address that begins with `@` is no file.
#[cfg(target_os = "linux")]
fn connect(socket: &UnixDatagram, address: &std::ffi::OsStr) -> std::io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    match address.as_bytes().strip_prefix(b"@") {
        Some(name) => {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            socket.connect_addr(&address)
        }
        None => socket.connect(address),
    }
}

#[cfg(not(target_os = "linux"))]
fn connect(socket: &UnixDatagram, address: &std::ffi::OsStr) -> std::io::Result<()> {
    socket.connect(address)
}
