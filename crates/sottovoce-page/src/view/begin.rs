//! Beginnings: of a store, whose key is made, and of a conversation.

use axum::extract::Form;
use axum::response::Redirect;
use serde::Deserialize;
use sottovoce::Scope;

use crate::english as en;
use crate::failure::Failure;
use crate::link;
use crate::room::Here;

pub(crate) async fn begin(here: Here) -> Result<Redirect, Failure> {
    here.app.house.config().make_key_file()?;
    Ok(Redirect::to("/timeline/default"))
}

#[derive(Deserialize)]
pub(crate) struct Named {
    name: String,
}

/// Leads to the conversation of that name. It exists once something is said there.
pub(crate) async fn conversation(Form(named): Form<Named>) -> Result<Redirect, Failure> {
    let scope = Scope::Named { id: named.name.trim().to_owned() };
    match scope.folder() {
        Ok(_) => Ok(Redirect::to(&link::of("timeline", &scope))),
        Err(_) => Err(Failure::wrong(en::NOT_A_NAME, en::WRITE_A_NAME)),
    }
}
