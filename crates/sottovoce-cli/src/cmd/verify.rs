//! `sottovoce verify`

mod shelf;

use std::path::{Path, PathBuf};
use std::{fs, io};

use shelf::Shelf;
use sottovoce::FileConversationStore;
use sottovoce::admin::{Inventory, Report, StoreInventory};
use sottovoce::store::Finding;

use crate::advice::FindingRow;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BAD, BOLD, GOOD, WARN, day, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Against an old copy of the whole folder put back, nothing in the folder helps. Keep an inventory elsewhere:
  sottovoce verify --save /elsewhere/inventory      now, and from time to time
  sottovoce verify --expect /elsewhere/inventory    is all there still, or forgotten?
With --all both are about every conversation, and about which there are.";

/// Reads every file and reports everything that is wrong
///
/// Changes nothing; `sottovoce repair` repairs what can be repaired.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Checks every conversation of the store, that none is missing, and that no foreign files lie between them
    #[arg(long)]
    all: bool,

    /// Also checks that everything in this inventory still exists, except what was forgotten since
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Writes an inventory of numbers and digests, without words, unless something expected is missing. FILE is new
    /// or an earlier inventory, and lies neither with the store nor with the key
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    if args.all {
        return everything(session, args).await;
    }
    let shelf = args.save.map(|file| Shelf::new(file, config)).transpose()?;
    let earlier =
        args.expect.as_deref().map(|file| read(file, Inventory::from_json)).transpose()?;
    let store = session.store().await?;
    let mut report = checked(&store).await?;
    let mut expected = None;
    if let Some(earlier) = earlier {
        let work = async |bar: &_| store.compare(earlier, output::moving(bar)).await;
        let findings = output::with_bar(Some(0), "comparing", work).await?;
        expected = Some(add(&mut report, findings));
    }
    show(session, &report, expected)?;
    let take = async || {
        let work = async |bar: &_| store.inventory(output::moving(bar)).await;
        output::with_bar(Some(0), "taking the inventory", work).await?.to_json()
    };
    save(shelf, expected, take).await?;
    Ok(Exit::of(report.is_sound()))
}

/// Checks a conversation.
async fn checked(store: &FileConversationStore) -> sottovoce::Result<Report> {
    let work = async |bar: &_| store.verify(output::moving(bar)).await;
    output::with_bar(Some(0), "verifying", work).await
}

/// Adds what a comparison found. Whether all that was expected is there.
fn add(report: &mut Report, findings: Vec<Finding>) -> bool {
    let is_as_expected = !findings.iter().any(|finding| finding.kind.is_problem());
    report.findings.extend(findings);
    is_as_expected
}

/// Writes an inventory, unless something expected is missing.
async fn save(
    shelf: Option<Shelf>,
    expected: Option<bool>,
    take: impl AsyncFnOnce() -> sottovoce::Result<String>,
) -> Result<(), Failure> {
    let Some(shelf) = shelf else { return Ok(()) };
    if expected == Some(false) {
        output::warning(&format!("{} was not written", shelf.file.display()));
        return Ok(());
    }
    shelf.put(&take().await?)
}

/// Checks the list of conversations, then each conversation.
async fn everything(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let shelf = args.save.map(|file| Shelf::new(file, config)).transpose()?;
    let earlier =
        args.expect.as_deref().map(|file| read(file, StoreInventory::from_json)).transpose()?;
    let stores = session.stores_or_empty()?;
    let (root, options) = (config.storage_root()?, stores.options()?);
    let mut report = options.clone().verify_catalog(&root).await?;
    let mut expected = None;
    if let Some(earlier) = earlier {
        expected = Some(add(&mut report, options.clone().compare(&root, earlier).await?));
    }
    if !report.findings.is_empty() || expected.is_some() {
        head(session, "*", "the list of conversations")?;
        show(session, &report, expected)?;
    }
    let mut is_sound = report.is_sound();
    for scope in session.scopes(true)? {
        let name = scope.to_string();
        head(session, &name, &name)?;
        let report = checked(&stores.open(scope).await?).await?;
        show(session, &report, None)?;
        is_sound &= report.is_sound();
    }
    save(shelf, expected, async || options.inventory(&root).await?.to_json()).await?;
    Ok(Exit::of(is_sound))
}

/// Prints what the findings that follow are about.
fn head(session: &Session, scope: &str, name: &str) -> io::Result<()> {
    match session.json {
        true => output::json(&object!("scope": scope)),
        false => output::line(format!("{BOLD}{name}{BOLD:#}")),
    }
}

/// Prints the findings of a check.
pub(super) fn show(session: &Session, report: &Report, expected: Option<bool>) -> io::Result<()> {
    let sound = report.is_sound();
    if session.json {
        FindingRow::all(&report.findings).iter().try_for_each(output::json)?;
        // The first field is the version of this output.
        let row = object!(
            "v": 1, "sound": sound, "messages": report.messages, "last": report.last_seq,
            "forgotten": report.forgotten, "findings": report.findings.len(),
        );
        return output::json(&row.maybe("expected", expected));
    }
    output::findings(&report.findings)?;
    let verdict = match (sound, report.findings.len()) {
        (true, 0) => format!("{GOOD}sound{GOOD:#}"),
        (true, _) => format!("{GOOD}sound{GOOD:#}, with {WARN}notes{WARN:#}"),
        (false, _) => format!("{BAD}not sound{BAD:#}"),
    };
    let when = report.times.map_or_else(String::new, |(first, last)| {
        format!(", from {} to {}", day(first), day(last))
    });
    output::line(format!(
        "{BOLD}{}{BOLD:#}{when}, {} recorded as gone, the highest {}: {verdict}",
        output::messages(report.messages),
        output::counted(report.forgotten, "number"),
        report.last_seq
    ))
}

fn read<T>(file: &Path, parse: impl Fn(&[u8], &str) -> sottovoce::Result<T>) -> Result<T, Failure> {
    let place = file.display().to_string();
    let unreadable = |error: io::Error| {
        Failure::input(format!("{place}: {error}"), "name a file that `verify --save` has written")
    };
    let json = fs::read(file).map_err(unreadable)?;
    parse(&json, &place).map_err(|error| {
        Failure::input(error.to_string(), "name a file that `verify --save` has written")
    })
}
