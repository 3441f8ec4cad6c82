//! What the servers have in common: their conversations, their lists in settings, and their end.

#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
mod syncing;

#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
use std::sync::Arc;
use std::time::Duration;

#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
use sottovoce::Config;
#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
use sottovoce::config::OpenConversations;
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output;
#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
use crate::session::Session;
#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
pub(crate) use syncing::Syncing;

/// Whoever waits longer for the end is told why.
const BRIEF: Duration = Duration::from_millis(500);

/// The exit codes of a server, for its help.
#[cfg(any(feature = "serve", feature = "wyoming"))]
macro_rules! exit_codes {
    () => {
        "\nExit codes:
  1  failed; see the message       5  the configuration cannot be used
  2  the command was mistyped, or an address refused
  4  no key, or the wrong one    130  stopped; what was acknowledged is kept"
    };
}
#[cfg(any(feature = "serve", feature = "wyoming"))]
pub(crate) use exit_codes;

/// The open conversations of a server. Makes the key on first use, and refuses another store's.
#[cfg(any(feature = "mcp", feature = "serve", feature = "wyoming"))]
pub(crate) async fn conversations(
    session: &Session,
    config: &Config,
) -> Result<Arc<OpenConversations>, Failure> {
    let keys = session.stores_or_make(config)?.keys();
    let conversations = OpenConversations::new(config.clone(), keys, session.clock())?;
    conversations.check().await?;
    #[cfg(not(feature = "sync"))]
    syncing::warn_if_shared(&conversations).await?;
    #[cfg(feature = "team")]
    crate::cmd::share::team::artifacts::fetch_for(&conversations);
    Ok(conversations)
}

/// Runs a server to its end. Ctrl-C and SIGTERM cancel `stop`, and it then ends by itself.
pub(crate) async fn until_stopped<T>(
    stop: &CancellationToken,
    served: impl Future<Output = T>,
) -> Result<(T, Exit), Failure> {
    let mut interrupt = Interrupt::listen()?;
    tokio::pin!(served);
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

/// What to do if an address cannot be listened on.
pub(crate) const TAKEN: &str =
    "choose another address or port, or stop the program that listens there";

/// The entries of a list in the settings.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', ';']).filter(|entry| !entry.is_empty())
}

/// The address in a setting. An empty text, which the environment may give, is none.
#[cfg(feature = "serve")]
pub(crate) fn address(
    setting: &str,
    text: Option<&str>,
) -> Result<Option<std::net::SocketAddr>, Failure> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    parse_address(text).map(Some).map_err(|reason| unusable(setting, reason))
}

/// An address of an option or a setting.
#[cfg(any(feature = "serve", feature = "mcp", feature = "page"))]
pub(crate) fn parse_address(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8000".to_owned())
}

/// The error of a setting.
#[cfg(any(feature = "serve", feature = "wyoming"))]
pub(crate) fn unusable(setting: &str, reason: impl Into<String>) -> Failure {
    sottovoce::Error::Config { place: setting.to_owned(), reason: reason.into() }.into()
}
