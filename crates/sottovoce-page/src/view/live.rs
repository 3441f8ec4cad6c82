//! What a page asks by itself: whether something was said or forgotten since.

use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use sottovoce::store::StoreBackend;

use crate::failure::Failure;
use crate::room::{Here, Room};
use crate::view::timeline::{after, fitting_page};

#[derive(Deserialize)]
pub(crate) struct Asked {
    /// The highest number that the page knows, and how many numbers it knows to be forgotten.
    after: u64,
    gone: u64,
}

/// The messages after a number as markup; nothing if there are none; 205 if the page has to be loaded again.
pub(crate) async fn follow(room: Room, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    let state = room.store.state().await?;
    let gone: Vec<_> = state.forgotten().collect();
    let gone_now: u64 = gone.iter().map(|range| range.end() - range.start() + 1).sum();
    if gone_now != asked.gone || state.last_seq < asked.after {
        return Ok(StatusCode::RESET_CONTENT.into_response());
    }
    if state.last_seq == asked.after {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let room = &room;
    let read = |most| async move { Ok(after(&room.store, asked.after, most).await?) };
    let (slice, markup) = fitting_page(room, &gone, None, read).await?;
    let last = slice.last.max(if slice.has_after { 0 } else { state.last_seq });
    Ok(([("x-last", last.to_string())], markup).into_response())
}

/// Tells a page that it is still let in. A locked one is refused before it gets here.
pub(crate) async fn entry(_: Here) -> StatusCode {
    StatusCode::NO_CONTENT
}
