//! The HTTP servers: for clients, and for whoever watches over the process.

mod health;
mod listen;

use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::OpenConversations;
use tokio_util::sync::CancellationToken;

use crate::handler::Handler;
use crate::hub::Hub;
use health::Health;
pub use health::MoreMetrics;
pub use listen::{ListenError, Listening, listen};

/// How long partial answers may take to be stored.
const STORING: Duration = Duration::from_secs(10);

/// Serves until `stop` is cancelled. Answers in progress then have the grace period; what came of them by then is stored
/// before this returns.
pub async fn serve(listening: Listening, hub: Hub, stop: CancellationToken) {
    let hub = Arc::new(hub);
    let Listening { listener, access, mut limits } = listening;
    // The largest request is read when there is no other.
    limits.memory =
        limits.memory.max(hub.config().serve.max_request_bytes.saturating_add(128 << 10));
    let listening = listener.address().ip();
    let handler = Handler { hub: Arc::clone(&hub), access, listening };
    let answer = move |request, client| handler.clone().answer(request, client);
    tokio::select! {
        _ = sottovoce_net::serve(listener, limits, answer, &stop, Some(&hub.cut)) => {}
        () = hub.conversations.clean_hourly() => return,
    }
    hub.turns.close();
    let storing = async {
        hub.turns.wait().await;
        hub.conversations.close().await;
    };
    if tokio::time::timeout(STORING, storing).await.is_err() {
        tracing::warn!("some partial answers could not be stored in time");
    }
}

/// Tells the health of a process, with `more` metrics, until `stop` is cancelled. Once `ending` is cancelled, the process is not ready any more.
pub async fn serve_health(
    listening: Listening,
    conversations: Arc<OpenConversations>,
    more: MoreMetrics,
    ending: CancellationToken,
    stop: CancellationToken,
) {
    let Listening { listener, access, mut limits } = listening;
    limits.grace = Duration::from_secs(1);
    let listening = listener.address().ip();
    let health = Health { conversations, more, ending, access, listening };
    let answer = move |request, client| health.clone().answer(request, client);
    sottovoce_net::serve(listener, limits, answer, &stop, None).await;
}
