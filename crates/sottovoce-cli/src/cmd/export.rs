//! `sottovoce export`

use std::io::{self};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use indicatif::ProgressBar;
use jiff::Timestamp;
use sottovoce::Scope;
use sottovoce::export::{ExportForm, ExportRange, Exported, Exporter};
use sottovoce_import::export_for_elara;

use crate::advice::FindingRow;
use crate::cmd::forget::parse_range;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::attended;
use crate::output::{self, BOLD, object};
use crate::private_file;
use crate::secret::Sources;
use crate::session::{Session, Stores};

const AFTER_HELP: &str = "\
Examples:
  sottovoce export --sealed ~/backup.sottovoce --all         everything, under the store's own key
  sottovoce --scope dm/42 export talk.json                   one conversation, exactly, in plain text
  sottovoce export talk.md --seqs 10-20                      for reading
  sottovoce export - --format json --yes | jq .              to another program
  sottovoce export ~/elara --for elara --ask-key             as Elara keeps it, sealed under its key

`sottovoce import backup FILE` takes JSON and sealed files back: into an empty store exactly as it was, into any other
without doubling anything. Keep a copy of the key too: `sottovoce key export`.";

/// Writes conversations to a file: as JSON, Markdown, for Elara, or sealed as a backup
///
/// Plain text leaves the encrypted store, so the command asks first. The file is new, readable by its owner alone,
/// and appears only when it is complete.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The new file, or `-` for standard output; with --for elara, a new folder
    file: PathBuf,

    /// The format; unless given, Markdown for a file ending in .md, else JSON
    #[arg(long, value_name = "FORM")]
    format: Option<Form>,

    /// Exports every conversation of the store
    #[arg(long)]
    all: bool,

    /// Only messages with these numbers, such as 10-20
    #[arg(long, value_name = "RANGE", value_parser = parse_range, conflicts_with = "all")]
    seqs: Option<RangeInclusive<u64>>,

    /// Only messages of this time or later, such as 2025-08-24T16:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "all")]
    since: Option<Timestamp>,

    /// Only messages until this time
    #[arg(long, value_name = "TIME", conflicts_with = "all")]
    until: Option<Timestamp>,

    /// Seals the file under the store's own key
    #[arg(long, conflicts_with_all = ["format", "system"])]
    sealed: bool,

    /// Writes a folder that another system can read
    #[arg(long = "for", value_name = "SYSTEM", conflicts_with_all = ["format", "all"])]
    system: Option<System>,

    #[command(flatten)]
    keys: Sources,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Json,
    #[value(alias = "md")]
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum System {
    /// The voice assistant in C#; plain text unless a key is given
    Elara,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let scopes = session.scopes(args.all)?;
    let stores = session.stores_or_empty()?;
    if stores.is_empty() || scopes.is_empty() {
        return Err(session.nothing());
    }
    if args.file != Path::new("-") {
        private_file::check(&args.file, session)?;
    }
    let Some(keys) = args.keys.read()? else { return Ok(Exit::Interrupted) };
    let is_plain = !args.sealed && keys.is_empty();
    let deed = "write messages as plain text, which --sealed does not";
    let question = "Write it unencrypted?";
    let warn = async || {
        output::warning(&format!(
            "{} will hold messages as plain text, readable by anyone with access to it",
            args.file.display()
        ));
        Ok(())
    };
    let yes = args.yes || !is_plain;
    if !session.agrees(yes, deed, question, "nothing was written", warn).await? {
        return Ok(Exit::Done);
    }
    let key = keys.first().map(|key| key.as_str());
    let work = async |bar: &_| write(&stores, &args, scopes, key, bar).await;
    let exported = attended("exporting", 0, "no file was made", work).await??;
    tell(session, &args, &exported)?;
    Ok(Exit::of(exported.skipped.is_empty()))
}

async fn write(
    stores: &Stores<'_>,
    args: &Args,
    scopes: Vec<Scope>,
    key: Option<&str>,
    bar: &ProgressBar,
) -> Result<Exported, Failure> {
    let mut range = ExportRange::default();
    if let Some(seqs) = args.seqs.clone() {
        range = range.seqs(seqs);
    }
    if args.since.is_some() || args.until.is_some() {
        let (since, until) =
            (args.since.unwrap_or(Timestamp::MIN), args.until.unwrap_or(Timestamp::MAX));
        range = range.times(since..=until);
    }
    let first = scopes.first().cloned().unwrap_or_default();
    let store = stores.open(first).await?;
    if args.system == Some(System::Elara) {
        let progress = output::moving(bar);
        return Ok(export_for_elara(&store, range, &args.file, key, progress).await?);
    }
    let mut exporter = match args.sealed {
        true => Exporter::sealed(&args.file, &store)?,
        false if args.file == Path::new("-") => Exporter::to_writer(form(args), io::stdout()),
        false => Exporter::to_file(form(args), &args.file)?,
    };
    for scope in scopes {
        exporter.add(&stores.open(scope).await?, range, output::moving(bar)).await?;
    }
    Ok(exporter.finish().await?)
}

fn form(args: &Args) -> ExportForm {
    let by_name = || match args.file.extension().and_then(|ending| ending.to_str()) {
        Some("md" | "markdown") => Form::Markdown,
        _ => Form::Json,
    };
    match args.format.unwrap_or_else(by_name) {
        Form::Json => ExportForm::Json,
        Form::Markdown => ExportForm::Markdown,
    }
}

fn tell(session: &Session, args: &Args, exported: &Exported) -> io::Result<()> {
    let is_stdout = args.file == Path::new("-");
    if session.json && !is_stdout {
        return output::json(&object!(
            "file": args.file, "sealed": args.sealed, "conversations": exported.conversations,
            "messages": exported.messages, "artifacts": exported.artifacts,
            "snapshots": exported.snapshots, "leftOut": exported.left_out,
            "skipped": FindingRow::all(&exported.skipped),
        ));
    }
    output::skipped(&exported.skipped);
    let mut words = format!(
        "{BOLD}wrote {}{BOLD:#} of {} to {}",
        output::counted(exported.messages, "message"),
        output::counted(exported.conversations as u64, "conversation"),
        if is_stdout { "standard output".to_owned() } else { args.file.display().to_string() },
    );
    for (number, what) in [(exported.artifacts, "artifact"), (exported.snapshots, "snapshot")] {
        if number > 0 {
            words.push_str(&format!(", with {}", output::counted(number as u64, what)));
        }
    }
    if exported.left_out > 0 {
        words.push_str(&format!("; {} left out", output::counted(exported.left_out, "message")));
    }
    output::note(&words);
    if args.sealed {
        output::note("it opens with this store's key alone: keep a copy of that as well");
    }
    Ok(())
}
