//! `sottovoce doctor`

mod fix;
mod folder;
pub(crate) mod key;
mod model;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use fix::Fix;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sottovoce::admin::store_exists;
use sottovoce::context::recall::{Recall, Understood};
use sottovoce::import::metadata::IMPORTED_FROM;
use sottovoce::store::{Finding, FindingKind, ReadResult};
use sottovoce::{Config, ConversationStore, Error, SystemClock, with_causes};

use crate::advice;
use crate::cmd::recall::understood_in_words;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BAD, DIM, GOOD, WARN};
use crate::session::{Session, left_out};

/// Checks the set-up, and names the command that fixes each problem
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fixes each problem after asking, and explains why the others cannot be fixed
    #[arg(long)]
    fix: bool,

    /// Does not ask
    #[arg(long, short, requires = "fix")]
    yes: bool,
}

/// The state of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Good,
    Warn,
    Bad,
}

/// One line of the report.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) about: &'static str,
    pub(crate) state: State,
    pub(crate) what: String,
    /// Commands, one per line.
    #[serde(rename = "mend")]
    pub(crate) advice: Option<String>,
    /// What --fix does about it; none if nothing is wrong.
    #[serde(skip)]
    fix: Option<Fix>,
}

impl Line {
    /// Whether --fix can do something about it.
    pub(crate) fn can_fix(&self) -> bool {
        self.fix.as_ref().is_some_and(|fix| fix.rank().is_some())
    }
}

#[derive(Default)]
struct Report(Vec<Line>);

impl Report {
    fn good(&mut self, about: &'static str, what: impl Into<String>) {
        self.0.push(Line { about, state: State::Good, what: what.into(), advice: None, fix: None });
    }

    fn warn(
        &mut self,
        about: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
        fix: Fix,
    ) {
        self.wrong(State::Warn, about, what.into(), advice.into(), fix);
    }

    fn bad(
        &mut self,
        about: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
        fix: Fix,
    ) {
        self.wrong(State::Bad, about, what.into(), advice.into(), fix);
    }

    fn wrong(&mut self, state: State, about: &'static str, what: String, advice: String, fix: Fix) {
        self.0.push(Line { about, state, what, advice: Some(advice), fix: Some(fix) });
    }

    fn error(&mut self, about: &'static str, error: &Error) {
        let fix = Fix::by_hand("what to do depends on the cause");
        self.bad(about, with_causes(error), advice::help(error), fix);
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let mut report = look(session).await;
    show(session, &report)?;
    if !args.fix && !session.json && report.0.iter().any(Line::can_fix) {
        output::note("`sottovoce doctor --fix` does what can be done about this, after asking");
    }
    // Nothing can be fixed without settings.
    if let Some(config) = session.loaded.get().filter(|_| args.fix) {
        let done = fix::all(session, config, &report, args.yes).await?;
        if done.anything {
            let mut again = session.clone();
            if done.settings {
                again.loaded = OnceLock::new();
            }
            if !session.json {
                output::note("looking again:");
            }
            report = look(&again).await;
            show(session, &report)?;
        }
    }
    let bad = report.0.iter().any(|line| line.state == State::Bad);
    Ok(Exit::of(!bad))
}

/// All checks, without any output.
#[cfg(feature = "servers")]
pub(crate) async fn checks(session: &Session) -> Vec<Line> {
    look(session).await.0
}

async fn look(session: &Session) -> Report {
    let mut report = Report::default();
    match session.load() {
        Err(error) => report.error("config", &error),
        Ok(config) => {
            match &config.file {
                Some(file) => report.good("config", file.display().to_string()),
                None => report.good(
                    "config",
                    "no settings file of your own; the defaults and the environment apply",
                ),
            }
            if let Some(left_out) = left_out(config) {
                let fix = Fix::by_hand("only you can decide whether to trust that file");
                report.warn("config", left_out, "sottovoce config", fix);
            }
            open_files(&mut report);
            model::look(&mut report, config).await;
            match (config.storage_root(), config.key_file()) {
                (Ok(root), Ok(key_file)) => {
                    key::key(&mut report, config, &key_file, &root);
                    key::key_changes(&mut report, config, &root);
                    folder::usable(&mut report, &root);
                    folder::lasting(&mut report, config, &root);
                    folder::disk_room(&mut report, &root);
                    folder::backups(&mut report, config, &root, session.clock().now().timestamp());
                    store(&mut report, session, config, &root).await;
                }
                (Err(error), _) | (_, Err(error)) => report.error("folders", &error),
            }
        }
    }
    report
}

fn show(session: &Session, report: &Report) -> std::io::Result<()> {
    for line in &report.0 {
        if session.json {
            output::json(line)?;
            continue;
        }
        let (style, word) = match line.state {
            State::Good => (GOOD, "good"),
            State::Warn => (WARN, "warn"),
            State::Bad => (BAD, "bad "),
        };
        // Parts of it come from a server.
        let what = output::printable(&line.what);
        output::line(format!("{style}{word}{style:#}  {:<7} {what}", line.about))?;
        for command in line.advice.iter().flat_map(|advice| advice.lines()) {
            output::line(format!("              {DIM}→ {}{DIM:#}", output::printable(command)))?;
        }
    }
    Ok(())
}

/// The fewest files that a server with all its connections, and sync, may have open.
const FEW_FILES: u64 = 1024;

fn open_files(report: &mut Report) {
    match crate::open_files::limit() {
        Some(limit) if limit < FEW_FILES => report.warn(
            "files",
            format!("only {limit} may be open at once, so many connections may be refused"),
            "ulimit -n 1024",
            Fix::by_hand("the limit belongs to what starts the program"),
        ),
        Some(limit) => report.good("files", format!("{limit} may be open at once")),
        None => report.good("files", "any number may be open at once"),
    }
}

async fn store(report: &mut Report, session: &Session, config: &Config, root: &Path) {
    let now = session.clock().now().timestamp();
    let newest = match store_exists(root) {
        Ok(true) => newest(session).await,
        Ok(false) => return clock(report, now, None),
        Err(error) => Err(error.into()),
    };
    let last = newest.as_ref().ok().and_then(|(newest, _)| newest.messages.first());
    // What another device said tells about that one's clock.
    let own = last.filter(|last| !last.message.metadata.contains_key(IMPORTED_FROM));
    clock(report, now, own.map(|last| last.message.timestamp));
    let (newest, understood) = match newest {
        Ok(newest) => newest,
        Err(Failure::Library(error))
            if !session.unattended || !matches!(error, Error::PassphraseNeeded { .. }) =>
        {
            return unreadable(report, config, root, &error);
        }
        Err(_) => {
            let fix = Fix::by_hand("run it again with the passphrase");
            return report.warn("store", "not checked", "sottovoce doctor", fix);
        }
    };
    if let Some(first) = newest.skipped.first() {
        let number = output::counted(newest.skipped.len() as u64, "finding");
        let what = format!("{number}; the first: {first}");
        let is_put_back = |found: &Finding| matches!(found.kind, FindingKind::PutBack { .. });
        match newest.skipped.iter().any(|finding| finding.repair_kind().is_some()) {
            // Which copy is the right one, its owner alone knows.
            _ if let Some(found) = newest.skipped.iter().find(|found| is_put_back(found)) => {
                report.bad("store", what, "sottovoce repair", Fix::by_hand(advice::advice(found)));
            }
            true => report.bad("store", what, "sottovoce repair", Fix::Repair),
            false => {
                let fix = Fix::by_hand("it only shows what is wrong; a backup may restore it");
                report.bad("store", what, "sottovoce verify", fix);
            }
        }
        return;
    }
    // It may be anything of that name. Reading the keys succeeded.
    if root.join("vault").symlink_metadata().is_err() {
        let what = "the records have no vault, so nothing can be written";
        return report.bad("store", what, "sottovoce repair", Fix::Repair);
    }
    report.good("store", "the newest end is sound");
    match understood {
        Ok(understood) if understood.all == 0 => {}
        Ok(understood) => report.good("recall", understood_in_words(understood)),
        Err(error) => report.error("recall", &error),
    }
}

/// The newest end of the store, and how much of it recall understands.
async fn newest(session: &Session) -> Result<(ReadResult, sottovoce::Result<Understood>), Failure> {
    let store = session.open().await?;
    let newest = store.read_tail(1).await?;
    Ok((newest, Recall::new(Arc::new(store)).understood().await))
}

fn unreadable(report: &mut Report, config: &Config, root: &Path, error: &Error) {
    match error {
        // The line about the key has reported it.
        Error::NoKey | Error::PlaceholderKey | Error::KeyLost { .. } | Error::KeyFile { .. } => {}
        Error::VaultDamaged { .. } => {
            let mend = key::vault_mend(config, root);
            let advice = mend.unwrap_or_else(|| advice::help(error).to_owned());
            let fix = Fix::by_hand("look at the damaged vault first: it may be the only one");
            report.bad("store", with_causes(error), advice, fix);
        }
        error => report.error("store", error),
    }
}

/// Checks the clock. The newest message may be slightly ahead of it, as the store allows.
fn clock(report: &mut Report, now: Timestamp, newest: Option<Timestamp>) {
    // An earlier clock is wrong, because the format did not exist then.
    let earliest = Timestamp::from_second(1_735_689_600).unwrap_or_default();
    let shown = output::moment(now);
    let is_ahead = |newest: Timestamp| newest.duration_since(now) > SignedDuration::from_hours(24);
    let behind = match newest.is_some_and(is_ahead) {
        true => ", but the newest message is from more than a day later",
        false => "",
    };
    if now < earliest || !behind.is_empty() {
        let fix = Fix::by_hand("only the superuser can set the clock");
        let what = format!("the clock says {shown}{behind}");
        report.bad("clock", what, "timedatectl set-ntp true", fix);
    } else if let Some(zone) = SystemClock::unknown_zone() {
        let what = format!("there is no time zone {zone:?}, which TZ names, so times are in UTC");
        let fix = Fix::by_hand("only you know which zone is meant");
        report.warn("clock", what, "timedatectl list-timezones", fix);
    } else {
        report.good("clock", shown);
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_clock_is_bad_when_the_newest_message_is_more_than_a_day_ahead() {
        let now: Timestamp = "2025-08-24T16:36:25Z".parse().unwrap();
        for (newest, state) in [
            (None, State::Good),
            (Some("2025-08-24T16:00:00Z"), State::Good),
            (Some("2025-08-25T16:36:25Z"), State::Good),
            (Some("2025-08-25T16:36:26Z"), State::Bad),
        ] {
            let mut report = Report::default();
            clock(&mut report, now, newest.map(|time| time.parse().unwrap()));
            assert_eq!(report.0[0].state, state, "{newest:?}");
        }
        let mut report = Report::default();
        clock(&mut report, "2001-01-01T00:00Z".parse().unwrap(), None);
        assert_eq!(report.0[0].state, State::Bad);
    }
}
