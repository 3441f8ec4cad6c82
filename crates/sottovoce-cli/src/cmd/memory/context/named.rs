//! `sottovoce context create`, `list`, `update`, `extend`, `delete`: conversations in which the model plays a part.

mod change;
mod create;
mod delete;
pub(crate) mod list;
pub(crate) mod shown;

use crate::exit::Outcome;
use crate::session::Session;

/// What is done with contexts by their names. A chat has none of it: it is in one of them.
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    Create(create::Args),
    List(list::Args),
    Update(change::Update),
    Extend(change::Extend),
    Delete(delete::Args),
}

pub(super) async fn run(session: &Session, action: Action) -> Outcome {
    match action {
        Action::Create(args) => create::run(session, args).await,
        Action::List(args) => {
            list::run(session, &args, "`sottovoce context create --help` tells how").await
        }
        Action::Update(args) => change::update(session, args).await,
        Action::Extend(args) => change::extend(session, &args).await,
        Action::Delete(args) => delete::run(session, &args).await,
    }
}
