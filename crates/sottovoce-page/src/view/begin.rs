//! The first use: makes the key.

use axum::response::Redirect;

use crate::failure::Failure;
use crate::room::Here;

pub(crate) async fn begin(here: Here) -> Result<Redirect, Failure> {
    here.app.house.make_key()?;
    Ok(Redirect::to("/timeline/default"))
}
