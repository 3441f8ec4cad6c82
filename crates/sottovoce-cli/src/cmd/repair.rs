//! `sottovoce repair` and `sottovoce pack`

use std::io;

use sottovoce::FileConversationStore;
use sottovoce::admin::{RepairAction, RepairOptions, RepairReport};

use crate::cmd::verify;
use crate::exit::{Exit, Outcome};
use crate::interrupt::attended;
use crate::output::{self, GOOD, WARN, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce repair --dry-run      what would it do?
  sottovoce repair                the plan, and a question
  sottovoce repair --quarantine   also moves aside what cannot be read

What it repairs: a lost or damaged head, a missing vault, records under other names, packs that do not hold what \
they say, copies, what was forgotten and is there again, and leftovers of interrupted writes. What was lost it \
cannot bring back: restore it from a backup, or record it as gone with `sottovoce forget NUMBER`.";

/// Repairs what it can, and deletes only what exists elsewhere with the same bytes
///
/// Shows the plan and asks first. Removes forgotten messages, and the rest of interrupted writes. Rebuilds a lost
/// head from the existing records; the newest records may have been removed before, and are then no longer missed. If
/// it is interrupted, run it again.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Only shows the plan
    #[arg(long)]
    dry_run: bool,

    /// Moves unreadable and foreign files to a folder `quarantine` in the conversation's folder
    #[arg(long)]
    quarantine: bool,

    /// Repairs the list of conversations: removes those that are gone, and adds those that were restored
    #[arg(long, conflicts_with_all = ["quarantine"])]
    catalog: bool,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

impl Args {
    /// Repairs without asking.
    pub(crate) fn without_asking() -> Self {
        Self { dry_run: false, quarantine: false, catalog: false, yes: true }
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    if args.catalog {
        return catalog(session, &args).await;
    }
    let store = session.store().await?;
    let options = RepairOptions { dry_run: false, quarantine: args.quarantine };
    if args.dry_run || !args.yes {
        let plan = repair(&store, RepairOptions { dry_run: true, ..options }).await?;
        if args.dry_run || plan.repairs.is_empty() {
            show(session, &plan, false)?;
            return Ok(Exit::of(plan.repairs.is_empty() && plan.report.is_sound()));
        }
        let findings = output::counted(plan.repairs.len() as u64, "finding");
        let deed = format!("repair {findings}, which --dry-run shows");
        let show = async || Ok(show(session, &plan, false)?);
        if !session.agrees(false, &deed, "Repair this?", "nothing was changed", show).await? {
            return Ok(Exit::Problems);
        }
    }
    let repaired = repair(&store, options).await?;
    show(session, &repaired, true)?;
    Ok(Exit::of(repaired.report.is_sound()))
}

/// Continues with the existing conversations.
async fn catalog(session: &Session, args: &Args) -> Outcome {
    let root = session.config()?.storage_root()?;
    let options = session.stores_or_empty()?.options()?;
    let report = options.clone().verify_catalog(&root).await?;
    verify::show(session, &report, None)?;
    if args.dry_run || report.is_sound() {
        return Ok(Exit::of(report.is_sound()));
    }
    let deed = "change the list of conversations";
    let question = "Continue with the existing conversations?";
    let show = async || Ok(());
    if !session.agrees(args.yes, deed, question, "nothing was changed", show).await? {
        return Ok(Exit::Problems);
    }
    options.clone().repair_catalog(&root).await?;
    let report = options.verify_catalog(&root).await?;
    verify::show(session, &report, None)?;
    Ok(Exit::of(report.is_sound()))
}

async fn repair(
    store: &FileConversationStore,
    options: RepairOptions,
) -> sottovoce::Result<RepairReport> {
    let work = async |bar: &_| store.repair(options, output::moving(bar)).await;
    output::with_bar(Some(0), "verifying", work).await
}

fn show(session: &Session, repaired: &RepairReport, done: bool) -> io::Result<()> {
    for action in &repaired.repairs {
        if session.json {
            output::json(&object!("done": done).all_of(action))?;
            continue;
        }
        let (style, word) = if done { (GOOD, "repaired") } else { (WARN, "would") };
        let RepairAction { finding, kind } = action;
        output::line(format!("{style}{word}{style:#}  {finding}\n        → {kind}"))?;
    }
    if repaired.repairs.is_empty() && !session.json {
        output::note("there is nothing that can be repaired");
    }
    // A plan is not carried out, so a check would only repeat the findings.
    if done || repaired.repairs.is_empty() {
        verify::show(session, &repaired.report, None)?;
    }
    Ok(())
}

/// Moves all messages except the newest into packs now, and merges packs
///
/// Appending does this by itself from time to time. Run it after copying in single files, and before a backup: packs
/// are few, and large ones never change. It changes no message, and an interruption loses none.
#[derive(Debug, clap::Args)]
pub(crate) struct PackArgs {}

pub(crate) async fn pack(session: &Session, _: PackArgs) -> Outcome {
    let store = session.store().await?;
    let work = async |bar: &_| store.pack(output::moving(bar)).await;
    let packed = attended("packing", 0, "what was moved stays moved", work).await??;
    if session.json {
        output::json(&packed)?;
    } else {
        output::line(format!(
            "moved {} into packs: {} before, {} now, {:.1} MiB",
            output::messages(packed.moved),
            packed.packs_before,
            packed.packs_after,
            packed.bytes as f64 / f64::from(1 << 20),
        ))?;
    }
    Ok(Exit::Done)
}
