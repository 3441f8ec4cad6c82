//! How a device begins to share, as the first one or by a code, and which conversations.

use sottovoce_sync::{DeviceOptions, Selection, SyncError, Syncer};

use crate::cli::whose;
use crate::cmd::share::credentials::Source;
use crate::cmd::share::{conversations, stores};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Object, object};
use crate::session::Session;

/// The name of this machine.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[derive(Debug, clap::Args)]
pub(super) struct Newcomer {
    /// This device's name, as your other devices show it; the host's name unless given
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    shared: Shared,

    #[command(flatten)]
    credentials: Source,
}

impl Newcomer {
    /// What syncs, and the device's options.
    pub(super) fn begin(self, session: &Session) -> Result<(Syncer, DeviceOptions), Failure> {
        let conversations = conversations(session, true)?.ok_or(SyncError::NotSetUp)?;
        let syncer = stores::syncer(conversations, self.credentials.remote(session.config()?)?);
        let name = self.name.unwrap_or_else(host_name);
        Ok((syncer, DeviceOptions { name, selection: self.shared.selection() }))
    }
}

/// Shows what a device shares from now on: as JSON, or in these notes.
pub(super) fn tell_newcomer(
    session: &Session,
    address: &str,
    options: &DeviceOptions,
    notes: [&str; 2],
) -> Outcome {
    let shares = selection_row(&options.selection);
    match session.json {
        true => {
            output::json(&object!("address": address, "name": options.name, "shares": shares))?;
        }
        false => notes.into_iter().for_each(output::note),
    }
    Ok(Exit::Done)
}

/// Which conversations are shared. In a pattern, `*` stands for any characters.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Shared {
    /// Shares all conversations, also those with one person (dm/USER) and parts of groups (guild/…)
    #[arg(long, conflicts_with = "only")]
    all: bool,

    /// Shares only conversations like this, such as kitchen or dm/*; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    only: Vec<String>,

    /// Does not share conversations like this; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    except: Vec<String>,
}

impl Shared {
    pub(super) fn is_given(&self) -> bool {
        self.all || !self.only.is_empty() || !self.except.is_empty()
    }

    pub(super) fn selection(self) -> Selection {
        let Self { all, only, except } = self;
        Selection { all, only, except }
    }
}

fn pattern(text: &str) -> Result<String, String> {
    if !text.contains('*') {
        return whose::scope(text).map(|scope| scope.to_string());
    }
    let kinds = ["*", "default", "dm/", "guild/", "named/"];
    match kinds.iter().any(|kind| text.starts_with(kind)) {
        true => Ok(text.to_owned()),
        false => Err(format!("no conversation is like that; did you mean named/{text}?")),
    }
}

/// A selection as JSON.
pub(super) fn selection_row(Selection { all, only, except }: &Selection) -> Object {
    object!("all": all, "only": only, "except": except)
}

/// A selection in words.
pub(super) fn described(selection: &Selection) -> String {
    let mut words = match (selection.only.is_empty(), selection.all) {
        (false, _) => selection.only.join(", "),
        (true, true) => "all conversations".to_owned(),
        (true, false) => "the default and the named conversations".to_owned(),
    };
    if !selection.except.is_empty() {
        words.push_str(&format!(", except {}", selection.except.join(", ")));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_no_conversation_can_match_is_refused() {
        for (text, accepted) in [
            ("kitchen", Some("named/kitchen")),
            ("dm/42", Some("dm/42")),
            ("dm/*", Some("dm/*")),
            ("*", Some("*")),
            ("kitchen*", None),
            ("dms/42", None),
        ] {
            assert_eq!(pattern(text).ok().as_deref(), accepted, "{text}");
        }
    }

    #[test]
    fn words_tell_what_is_shared() {
        let mut selection = Selection::default();
        assert_eq!(described(&selection), "the default and the named conversations");
        selection.except = vec!["named/diary".to_owned()];
        selection.all = true;
        assert_eq!(described(&selection), "all conversations, except named/diary");
        selection.only = vec!["dm/1".to_owned(), "dm/2".to_owned()];
        assert_eq!(described(&selection), "dm/1, dm/2, except named/diary");
    }
}
