//! Which view answers at which address.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use crate::app::App;
use crate::english as en;
use crate::failure::Failure;
use crate::view::{
    artifact, begin, conversations, data, export, forget, health, knows, live, message, numbers,
    search, sees, settings, snapshots, store_settings, talk, timeline,
};

/// The views that change nothing although they are asked by `POST`, so that words stay out of addresses.
const READING: [&str; 3] = ["/sees/", "/verify", "/export/"];

/// Whether a form may be sent to a page that is read-only.
pub(crate) fn stays_readable(path: &str) -> bool {
    READING.iter().any(|view| path.starts_with(view))
}

pub(crate) fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(conversations::show))
        .route("/begin", post(begin::begin))
        .route("/conversation", post(begin::conversation))
        .route("/timeline/{*scope}", get(timeline::show))
        .route("/live/timeline/{*scope}", get(live::follow))
        .route("/message/{*scope}", get(message::show))
        .route("/words/{*scope}", get(message::whole))
        .route("/artifact/{*scope}", get(artifact::show))
        .route("/contents/{*scope}", get(artifact::contents))
        .route("/search", get(search::show))
        .route("/sees/{*scope}", get(sees::show).post(sees::explain))
        .route("/talk/{*scope}", post(talk::talk))
        .route("/stop/{*scope}", post(talk::stop))
        .route("/forget/{*scope}", get(forget::choose).post(forget::plan))
        .route("/forgotten/{*scope}", post(forget::carry_out))
        .route("/export/{*scope}", post(export::export))
        .route("/snapshots/{*scope}", get(snapshots::show).post(snapshots::change))
        .route("/settings", get(store_settings::show))
        .route("/settings/{*scope}", get(settings::show).post(settings::change))
        .route("/limits/{*scope}", post(settings::limits))
        .route("/numbers", get(numbers::all))
        .route("/numbers/{*scope}", get(numbers::show))
        .route("/data", get(data::show))
        .route("/knows", get(knows::show))
        .route("/health", get(health::show))
        .route("/live/health", get(health::progress))
        .route("/live/entry", get(live::entry))
        .route("/verify", post(health::verify))
        .fallback(nothing)
        // The server has read the body already, as far as it may go.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

async fn nothing() -> Failure {
    Failure::NotFound(en::NO_SUCH_PAGE)
}
