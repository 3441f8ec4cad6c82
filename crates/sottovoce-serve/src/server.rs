//! The HTTP servers: for clients, and for whoever watches over the process.

mod health;
mod listen;

use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::OpenConversations;
use sottovoce_net::{ConnectionLimits, accept};
use tokio_util::sync::CancellationToken;

use crate::forward::UNREAD;
use crate::handler::Handler;
use crate::hub::Hub;
use health::Health;
pub use health::MoreMetrics;
pub use listen::{Limits, ListenError, Listening, listen};

/// How long partial answers may take to be stored.
const STORING: Duration = Duration::from_secs(10);

/// Serves until `stop` is cancelled. Answers in progress then have the grace period; what came of them by then is stored
/// before this returns.
pub async fn serve(listening: Listening, hub: Hub, stop: CancellationToken) {
    let hub = Arc::new(hub);
    let limits = listening.limits;
    let handler = Handler {
        hub: Arc::clone(&hub),
        access: Arc::clone(&listening.access),
        listening: listening.address().ip(),
        body_time: limits.body,
    };
    let answer = move |request, client| handler.clone().answer(request, client);
    let graceful = tokio::select! {
        graceful = accept(listening.listener, connections(limits), answer, &stop) => graceful,
        () = hub.conversations.clean_hourly() => return,
    };
    let closed = graceful.shutdown();
    tokio::pin!(closed);
    if tokio::time::timeout(limits.grace, &mut closed).await.is_err() {
        hub.cut.cancel();
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
    let health = Health {
        conversations,
        more,
        ending,
        access: Arc::clone(&listening.access),
        listening: listening.address().ip(),
    };
    let answer = move |request, client| health.clone().answer(request, client);
    let graceful = accept(listening.listener, connections(listening.limits), answer, &stop).await;
    drop(tokio::time::timeout(Duration::from_secs(1), graceful.shutdown()).await);
}

fn connections(limits: Limits) -> ConnectionLimits {
    ConnectionLimits { connections: limits.connections, head: limits.head, unread: UNREAD }
}
