//! What the servers have in common: their conversations, their lists in settings, and their end.

#[cfg(not(feature = "share"))]
mod unshared;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::OpenConversations;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "share")]
pub(crate) use crate::cmd::share::background::Syncing;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;
#[cfg(not(feature = "share"))]
pub(crate) use unshared::Syncing;

/// Whoever waits longer for the end is told why.
const BRIEF: Duration = Duration::from_millis(500);

/// The open conversations of a server. Makes the key on first use, and refuses another store's.
pub(crate) async fn conversations(session: &Session) -> Result<Arc<OpenConversations>, Failure> {
    let keys = session.stores_or_make()?.keys();
    let conversations = OpenConversations::new(session.config()?.clone(), keys, session.clock())?;
    conversations.check().await?;
    #[cfg(not(feature = "share"))]
    unshared::warn_if_shared(&conversations).await?;
    #[cfg(feature = "share")]
    conversations.set_artifact_source(crate::cmd::share::team::artifacts::source(&conversations));
    Ok(conversations)
}

/// Runs a server of these conversations to its end, and syncs them meanwhile.
pub(crate) async fn serve_and_sync<F: Future<Output = ()>>(
    conversations: &Arc<OpenConversations>,
    serve: impl FnOnce(CancellationToken) -> F,
) -> Outcome {
    let syncing = Syncing::new(conversations)?;
    let ((), exit) = until_stopped(|stop| syncing.during(serve(stop))).await?;
    Ok(exit)
}

/// Runs a server to its end. Ctrl-C and SIGTERM cancel what it is given, and it then ends by itself.
pub(crate) async fn until_stopped<F: Future>(
    serve: impl FnOnce(CancellationToken) -> F,
) -> Result<(F::Output, Exit), Failure> {
    let stop = CancellationToken::new();
    let mut interrupt = Interrupt::listen()?;
    let mut served = pin!(serve(stop.clone()));
    tokio::select! {
        ended = &mut served => Ok((ended, Exit::Done)),
        _ = interrupt.heard() => {
            stop.cancel();
            let ended = match tokio::time::timeout(BRIEF, &mut served).await {
                Ok(ended) => ended,
                Err(_) => {
                    output::note("stopping; answers in progress have a few seconds");
                    served.await
                }
            };
            Ok((ended, Exit::Interrupted))
        }
    }
}

/// The certificate and its key of a section of the settings, if it names them.
pub(crate) fn certificate<'a>(
    section: &str,
    certificate: Option<&'a PathBuf>,
    key: Option<&'a PathBuf>,
) -> Result<Option<(&'a PathBuf, &'a PathBuf)>, Failure> {
    if certificate.is_some() != key.is_some() {
        let help = format!("set {section}.TlsCertificate and {section}.TlsKey, or neither");
        return Err(Failure::input("TLS needs both a certificate and its key", help));
    }
    if certificate.is_some() && !cfg!(feature = "https") {
        let what = "a certificate is configured, and HTTPS is not built in";
        let help = "build with `--features https`, or put a proxy that speaks HTTPS in front";
        return Err(Failure::input(what, help));
    }
    Ok(certificate.zip(key))
}

/// What to do if an address cannot be listened on.
pub(crate) const TAKEN: &str =
    "choose another address or port, or stop the program that listens there";

/// The entries of a list in the settings.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', ';']).filter(|entry| !entry.is_empty())
}

/// The address in a setting. An empty text, which the environment may give, is none.
pub(crate) fn address(setting: &str, text: Option<&str>) -> Result<Option<SocketAddr>, Failure> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    parse_address(text).map(Some).map_err(|reason| unusable(setting, reason))
}

/// An address of an option or a setting.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8000".to_owned())
}

/// The error of a setting.
pub(crate) fn unusable(setting: &str, reason: impl Into<String>) -> Failure {
    sottovoce::Error::Config { place: setting.to_owned(), reason: reason.into() }.into()
}
