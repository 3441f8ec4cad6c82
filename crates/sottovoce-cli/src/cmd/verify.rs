//! `sottovoce verify`

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sottovoce::{FileConversationStore, Inventory, Progress, Report};

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BAD, BOLD, GOOD, WARN};
use crate::session::Session;

const AFTER_HELP: &str = "\
Against an old copy of the whole folder put back, nothing in the folder helps. Keep an inventory elsewhere:
  sottovoce verify --save /elsewhere/inventory         now, and from time to time
  sottovoce verify --expect /elsewhere/inventory       everything in it is to be there still, or forgotten since

Exit codes:
  0  sound                         3  something was lost, changed or cannot be read
  1  failed; see the message       4  no key, or the wrong one";

/// Reads every file and names all that is not as it should be
///
/// Changes nothing; `sottovoce repair` mends what can be mended.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Checks as well that all is there that an inventory says was there, save what was forgotten since
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Writes an inventory, unless something that was expected is not there: numbers and digests, no words
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    /// The version of these lines.
    v: u32,
    sound: bool,
    messages: usize,
    last: u64,
    forgotten: u64,
    findings: usize,
    /// Whether an inventory was compared, and what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<bool>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let earlier = args.expect.as_deref().map(read).transpose()?;
    let store = session.store(&config).await?;
    let bar = bar("verifying");
    let report = store.verify(shown_on(&bar)).await;
    bar.finish_and_clear();
    let mut report = report?;
    let mut expected = None;
    if let Some(earlier) = earlier {
        let findings = compare(&store, earlier).await?;
        expected = Some(findings.is_empty());
        report.findings.extend(findings);
    }
    show(session, &report, expected)?;
    if let Some(file) = args.save {
        if expected == Some(false) {
            output::warning(&format!("{} was not written", file.display()));
        } else {
            save(&take(&store).await?, &file)?;
            output::note(&format!(
                "keep {} where whoever may put back an old copy of the store cannot write",
                file.display()
            ));
        }
    }
    Ok(if report.is_sound() { Exit::Done } else { Exit::Found })
}

/// Tells what a check has found.
pub(super) fn show(session: &Session, report: &Report, expected: Option<bool>) -> io::Result<()> {
    let sound = report.is_sound();
    if session.json {
        report.findings.iter().try_for_each(output::json)?;
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
        "{BOLD}{}{BOLD:#}{when}, {} numbers forgotten, the highest {}: {verdict}",
        output::messages(report.messages),
        report.forgotten,
        report.last_seq
    ))
}

async fn compare(
    store: &FileConversationStore,
    earlier: Inventory,
) -> sottovoce::Result<Vec<sottovoce::Finding>> {
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

/// What moves a bar on.
pub(super) fn shown_on(bar: &indicatif::ProgressBar) -> impl Fn(Progress) + Send + Sync + use<> {
    let bar = bar.clone();
    move |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
    }
}

fn read(file: &Path) -> Result<Inventory, Failure> {
    let place = file.display().to_string();
    let unreadable = |error: io::Error| {
        Failure::input(format!("{place}: {error}"), "name a file that `verify --save` has written")
    };
    let json = fs::read(file).map_err(unreadable)?;
    Inventory::from_json(&json, &place).map_err(|error| {
        Failure::input(error.to_string(), "name a file that `verify --save` has written")
    })
}

/// Writes the inventory whole, in place of an earlier one.
fn save(inventory: &Inventory, file: &Path) -> Result<(), Failure> {
    let json = inventory.to_json()?;
    let failed = |error: io::Error| {
        Failure::input(
            format!("{}: {error}", file.display()),
            "name a file in a folder that exists and may be written",
        )
    };
    let temporary = {
        let mut name = file.as_os_str().to_owned();
        name.push(".new");
        PathBuf::from(name)
    };
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let write = || {
        let mut new = OpenOptions::new();
        let mut new = new.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        new.write_all(json.as_bytes())?;
        new.sync_all()?;
        fs::rename(&temporary, file)?;
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(failed)
}
