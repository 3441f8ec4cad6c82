//! `sottovoce context create`, `list`, `update`, `extend`, `delete`: manages contexts by name.

mod change;
mod create;
mod delete;
pub(crate) mod list;
pub(crate) mod shown;

use crate::exit::Outcome;
use crate::session::Session;

/// Actions on contexts by name. A chat does not have them.
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
