//! Links, as they are given and shown.

use sottovoce_team::{Link, TeamError};

use crate::cmd::share::{Target, given};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, object};
use crate::session::Session;

/// Writes a link to its file, or shows it.
pub(super) fn put(target: &Target, session: &Session, link: &Link, whose: &str) -> Outcome {
    let revealed = link.reveal();
    let is_shown = target.write("link", &revealed, session)?;
    if session.json {
        output::json(&target.shown(object!("team": link.team()), "link", &revealed))?;
    } else if is_shown {
        output::line(&*revealed)?;
    }
    output::note(whose);
    Ok(Exit::Done)
}

/// The link of an argument.
pub(super) fn read(argument: &str) -> Result<Link, Failure> {
    let named = ("link", "sottovoce team invite");
    let is_itself = argument.contains('#') && argument.contains("://");
    let invalid = |reason| TeamError::InvalidLink { reason };
    Ok(given(argument, named, is_itself, invalid)?.parse()?)
}

/// The name of this machine's user.
pub(super) fn user_name() -> String {
    let named = ["USER", "LOGNAME"].into_iter();
    let name = named.filter_map(|name| std::env::var(name).ok()).find(|name| !name.is_empty());
    name.unwrap_or_else(|| "somebody".to_owned())
}
