//! Health, readiness and metrics, for whoever watches over the process. None of it tells what was said, or by whom.

use std::net::IpAddr;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use sottovoce::config::OpenConversations;
use sottovoce_net::{Body, Client, OPEN_METRICS, OpenMetrics, plain, reply};
use tokio_util::sync::CancellationToken;

use crate::access::Access;

/// Adds further metrics of the process.
pub type MoreMetrics = Arc<dyn Fn(&mut OpenMetrics) + Send + Sync>;

/// What is told about a process.
#[derive(Clone)]
pub(super) struct Health {
    pub(super) conversations: Arc<OpenConversations>,
    pub(super) more: MoreMetrics,
    /// Cancelled when the process ends, and is not ready any more.
    pub(super) ending: CancellationToken,
    pub(super) access: Arc<Access>,
    pub(super) listening: IpAddr,
}

impl Health {
    pub(super) async fn answer(self, request: Request<Incoming>, client: Client) -> Response<Body> {
        client.admit();
        if self.access.check_names(request.headers(), self.listening).is_err() {
            return plain(StatusCode::MISDIRECTED_REQUEST, "this name of the server is unknown\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n");
        }
        match request.uri().path() {
            "/healthz" => plain(StatusCode::OK, "ok\n"),
            "/readyz" if self.ending.is_cancelled() => {
                plain(StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
            }
            "/readyz" => match self.conversations.check().await {
                Ok(()) => plain(StatusCode::OK, "ready\n"),
                Err(error) => {
                    tracing::warn!(%error, "the store cannot be used");
                    plain(StatusCode::SERVICE_UNAVAILABLE, "the store cannot be used\n")
                }
            },
            "/metrics" if !self.access.opens_all(request.headers()) => {
                plain(StatusCode::UNAUTHORIZED, "Serve.Token is required\n")
            }
            "/metrics" => reply(StatusCode::OK, OPEN_METRICS, self.metrics().await),
            _ => plain(StatusCode::NOT_FOUND, "/healthz, /readyz and /metrics are served\n"),
        }
    }

    async fn metrics(&self) -> String {
        let open = self.conversations.all();
        let mut stored = 0;
        for conversation in &open {
            // One that cannot be read is missing in the sum, and its turns count as errors.
            if let Ok(state) = conversation.store().state().await {
                let forgotten = state.forgotten().map(|gone| gone.end() - gone.start() + 1);
                stored += state.last_seq.saturating_sub(forgotten.sum());
            }
        }
        let mut metrics = OpenMetrics::new(self.conversations.metrics().open_metrics());
        metrics.gauge("sottovoce_open_conversations", "Conversations in memory.", open.len());
        let help = "Messages stored in the open conversations.";
        metrics.gauge("sottovoce_stored_messages", help, stored);
        if let Some(bytes) = resident_memory() {
            metrics.gauge("process_resident_memory_bytes", "Memory of this process.", bytes);
        }
        (self.more)(&mut metrics);
        metrics.end()
    }
}

/// The memory of this process in bytes, where Linux tells it.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
