//! `sottovoce verify`

mod shelf;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sottovoce::admin::{Inventory, Progress, Report, StoreInventory};
use sottovoce::{Config, FileConversationStore};

use crate::cmd::import::advance;
use crate::cmd::memory::scopes;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::finding_advice::FindingRow;
use crate::output::{self, BAD, BOLD, GOOD, WARN};
use crate::session::Session;
use shelf::Shelf;

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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    /// The version of this output.
    v: u32,
    sound: bool,
    messages: usize,
    last: u64,
    forgotten: u64,
    findings: usize,
    /// The result of comparing an inventory, if one was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<bool>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    if args.all {
        return everything(session, &config, args).await;
    }
    let shelf = args.save.map(|file| Shelf::new(file, &config)).transpose()?;
    let earlier = args.expect.as_deref().map(read).transpose()?;
    let store = session.store(&config).await?;
    let bar = bar("verifying");
    let report = store.verify(shown_on(&bar)).await;
    bar.finish_and_clear();
    let mut report = report?;
    let mut expected = None;
    if let Some(earlier) = earlier {
        let findings = compare(&store, earlier).await?;
        expected = Some(!findings.iter().any(|finding| finding.kind.is_problem()));
        report.findings.extend(findings);
    }
    show(session, &report, expected)?;
    if let Some(shelf) = shelf {
        if expected == Some(false) {
            output::warning(&format!("{} was not written", shelf.file.display()));
        } else {
            shelf.put(&take(&store).await?.to_json()?)?;
        }
    }
    Ok(if report.is_sound() { Exit::Done } else { Exit::Problems })
}

#[derive(Serialize)]
struct Of {
    scope: String,
}

/// Checks the list of conversations, then each conversation.
async fn everything(session: &Session, config: &Config, args: Args) -> Outcome {
    let mut exit = Exit::Done;
    let shelf = args.save.map(|file| Shelf::new(file, config)).transpose()?;
    let earlier = args.expect.as_deref().map(read_all).transpose()?;
    let stores = session.stores_or_empty(config)?;
    let (root, options) = (config.storage_root()?, stores.options()?);
    let mut report = options.clone().verify_catalog(&root).await?;
    let mut expected = None;
    if let Some(earlier) = earlier {
        let findings = options.clone().compare(&root, earlier).await?;
        expected = Some(!findings.iter().any(|finding| finding.kind.is_problem()));
        report.findings.extend(findings);
    }
    if !report.findings.is_empty() || expected.is_some() {
        match session.json {
            true => output::json(&Of { scope: "*".to_owned() })?,
            false => output::line(format!("{BOLD}the list of conversations{BOLD:#}"))?,
        }
        show(session, &report, expected)?;
    }
    if !report.is_sound() {
        exit = Exit::Problems;
    }
    for scope in scopes::all(config)? {
        match session.json {
            true => output::json(&Of { scope: scope.to_string() })?,
            false => output::line(format!("{BOLD}{scope}{BOLD:#}"))?,
        }
        let store = stores.open(scope).await?;
        let bar = bar("verifying");
        let report = store.verify(shown_on(&bar)).await;
        bar.finish_and_clear();
        let report = report?;
        show(session, &report, None)?;
        if !report.is_sound() {
            exit = Exit::Problems;
        }
    }
    if let Some(shelf) = shelf {
        match expected {
            Some(false) => output::warning(&format!("{} was not written", shelf.file.display())),
            _ => shelf.put(&options.inventory(&root).await?.to_json()?)?,
        }
    }
    Ok(exit)
}

/// Prints the findings of a check.
pub(super) fn show(session: &Session, report: &Report, expected: Option<bool>) -> io::Result<()> {
    let sound = report.is_sound();
    if session.json {
        FindingRow::all(&report.findings).iter().try_for_each(output::json)?;
        return output::json(&Summary {
            v: 1,
            sound,
            messages: report.messages,
            last: report.last_seq,
            forgotten: report.forgotten,
            findings: report.findings.len(),
            expected,
        });
    }
    output::findings(&report.findings)?;
    let verdict = match (sound, report.findings.len()) {
        (true, 0) => format!("{GOOD}sound{GOOD:#}"),
        (true, _) => format!("{GOOD}sound{GOOD:#}, with {WARN}notes{WARN:#}"),
        (false, _) => format!("{BAD}not sound{BAD:#}"),
    };
    let when = report.times.map_or_else(String::new, |(first, last)| {
        format!(", from {} to {}", first.strftime("%Y-%m-%d"), last.strftime("%Y-%m-%d"))
    });
    output::line(format!(
        "{BOLD}{}{BOLD:#}{when}, {} recorded as gone, the highest {}: {verdict}",
        output::messages(report.messages),
        output::counted(report.forgotten, "number"),
        report.last_seq
    ))
}

async fn compare(
    store: &FileConversationStore,
    earlier: Inventory,
) -> sottovoce::Result<Vec<sottovoce::store::Finding>> {
    let bar = bar("comparing");
    let findings = store.compare(earlier, shown_on(&bar)).await;
    bar.finish_and_clear();
    findings
}

async fn take(store: &FileConversationStore) -> sottovoce::Result<Inventory> {
    let bar = bar("taking the inventory");
    let inventory = store.inventory(shown_on(&bar)).await;
    bar.finish_and_clear();
    inventory
}

pub(super) fn bar(what: &'static str) -> indicatif::ProgressBar {
    output::progress(Some(0), what)
}

/// A callback that moves a progress bar.
pub(super) fn shown_on(bar: &indicatif::ProgressBar) -> impl Fn(Progress) + Send + Sync + use<> {
    let bar = bar.clone();
    move |progress| advance(&bar, progress)
}

fn read(file: &Path) -> Result<Inventory, Failure> {
    read_as(file, Inventory::from_json)
}

fn read_all(file: &Path) -> Result<StoreInventory, Failure> {
    read_as(file, StoreInventory::from_json)
}

fn read_as<T>(
    file: &Path,
    parse: impl Fn(&[u8], &str) -> sottovoce::Result<T>,
) -> Result<T, Failure> {
    let place = file.display().to_string();
    let unreadable = |error: io::Error| {
        Failure::input(format!("{place}: {error}"), "name a file that `verify --save` has written")
    };
    let json = fs::read(file).map_err(unreadable)?;
    parse(&json, &place).map_err(|error| {
        Failure::input(error.to_string(), "name a file that `verify --save` has written")
    })
}
