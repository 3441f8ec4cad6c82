//! Health, readiness and metrics, for whoever watches over the process. None of it tells what was said, or by whom.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use sottovoce::config::OpenConversations;
use sottovoce_net::{Body, Client};
use tokio_util::sync::CancellationToken;

use crate::access::Access;

/// The format of `/metrics`.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Further metrics of the process, in OpenMetrics' text format without the line that ends it.
pub type MoreMetrics = Arc<dyn Fn() -> String + Send + Sync>;

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
        if self.access.check_host(request.headers(), self.listening).is_err() {
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
            "/metrics" => {
                let mut response = plain(StatusCode::OK, self.metrics().await);
                response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
                response
            }
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
        let mut text = self.conversations.metrics().open_metrics();
        let mut gauge = |name: &str, help: &str, value: u64| {
            let _ = writeln!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {value}");
        };
        gauge("sottovoce_open_conversations", "Conversations in memory.", open.len() as u64);
        gauge("sottovoce_stored_messages", "Messages stored in the open conversations.", stored);
        if let Some(bytes) = resident_memory() {
            gauge("process_resident_memory_bytes", "Memory of this process.", bytes);
        }
        text.push_str(&(self.more)());
        text.push_str("# EOF\n");
        text
    }
}

/// The memory of this process in bytes, where Linux tells it.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
