//! Pages whose content may take a while: their beginning is sent before it is there.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use maud::{Markup, html};
use tokio::runtime::Handle;

use crate::english as en;
use crate::failure::Failure;
use crate::html::{Shell, around, layout};
use crate::room::Here;

/// How long the browser waits for a whole page, before it gets the beginning of one.
const PATIENCE: Duration = Duration::from_millis(25);

/// A page that begins with `first`, and goes on with what `rest` gives.
///
/// # Errors
/// Those of `rest`, if it is quick. A later one becomes a part of the page.
pub(crate) async fn page(
    here: &Here,
    shell: &Shell<'_>,
    first: Markup,
    rest: impl Future<Output = Result<Markup, Failure>> + Send + 'static,
) -> Result<Response, Failure> {
    // Ranking takes a processor for as long as a second, which other requests must not wait for.
    let runtime = Handle::current();
    let mut rest = tokio::task::spawn_blocking(move || runtime.block_on(rest));
    let lost = |_| Err(Failure::Plain(StatusCode::INTERNAL_SERVER_ERROR, en::BROKE_OFF));
    if let Ok(rest) = tokio::time::timeout(PATIENCE, &mut rest).await {
        let main = html! { (first) (rest.unwrap_or_else(lost)?) };
        return Ok(layout(&here.visit, shell, &main).into_response());
    }
    let (before, after) = around(&here.visit, shell, &first);
    let here = here.clone();
    let rest = async move {
        let rest = rest.await.unwrap_or_else(lost);
        let rest = rest.unwrap_or_else(|failure| failure.content(&here.visit, &here.app.advice));
        rest.into_string() + &after
    };
    let pieces = stream::iter([before]).chain(stream::once(rest));
    let body = Body::from_stream(pieces.map(Ok::<_, Infallible>));
    Ok(([(CONTENT_TYPE, "text/html; charset=utf-8")], body).into_response())
}
