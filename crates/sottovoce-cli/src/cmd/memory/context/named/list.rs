//! `sottovoce context list`

use std::num::NonZeroUsize;

use serde::Serialize;
use sottovoce::Scope;
use sottovoce::persona::PersonaConversation;

use crate::cmd::memory::context::named::shown;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::output::table;
use crate::output::table::Cell;
use crate::session::Session;

/// Contexts per page.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(19);

const AFTER_HELP: &str = "\
Examples:
  sottovoce context list
  sottovoce context list --all --page 2
  sottovoce --json context list            with each one's personality";

/// Lists the open contexts, newest first
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Includes deleted and expired contexts that are not removed yet
    #[arg(long)]
    all: bool,

    /// Only this page, counted from 1
    #[arg(long, value_name = "N")]
    page: Option<NonZeroUsize>,

    /// Contexts per page; 20 unless given
    #[arg(long, value_name = "N")]
    page_size: Option<NonZeroUsize>,
}

/// A conversation that may or may not be a context.
#[derive(Serialize)]
struct Unreadable<'a> {
    id: &'a str,
    scope: String,
    error: &'static str,
}

/// Lists contexts. `how` describes how to create the first one.
pub(crate) async fn run(session: &Session, args: &Args, how: &str) -> Outcome {
    let config = session.config()?;
    let Some(contexts) = session.contexts(&config)? else {
        return Err(Failure::Nothing { folder: config.storage_root()? });
    };
    let listed = contexts.list().await?;
    let unreadable = listed.unreadable;
    let mut all = listed.contexts;
    let total = all.len();
    all.retain(|context| args.all || context.is_open());
    let hidden = total - all.len();
    let shown = page(&all, args);
    if session.json {
        shown.iter().try_for_each(|context| output::json(&shown::Row::of(context)))?;
    } else {
        show(session, shown)?;
        say(args, &all, shown, hidden, how);
    }
    let error = "its settings cannot be read";
    for id in &unreadable {
        let scope = Scope::Named { id: id.clone() }.to_string();
        match session.json {
            true => output::json(&Unreadable { id, scope, error })?,
            false => output::warning(&format!("{scope}: {error}; `sottovoce verify` tells more")),
        }
    }
    Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Problems })
}

/// The requested page, or all contexts without a page.
fn page<'a>(all: &'a [PersonaConversation], args: &Args) -> &'a [PersonaConversation] {
    if args.page.is_none() && args.page_size.is_none() {
        return all;
    }
    let before = args.page.map_or(0, |page| page.get() - 1);
    all.chunks(args.page_size.unwrap_or(PAGE).get()).nth(before).unwrap_or_default()
}

fn show(session: &Session, contexts: &[PersonaConversation]) -> std::io::Result<()> {
    if contexts.is_empty() {
        return Ok(());
    }
    let now = session.clock().now().timestamp();
    let row = |context: &PersonaConversation| {
        let (state, style) = shown::state(context);
        [
            Cell::new(&context.id),
            Cell::new(&context.name).at_most(20),
            Cell::number(context.messages),
            Cell::new(&shown::relative(context.expires_at, now)).style(shown::urgency(context)),
            Cell::new(state).style(style),
        ]
    };
    table::show(["id", "name", "messages", "expires", "state"], contexts.iter().map(row).collect())
}

/// Reports what the table leaves out.
fn say(
    args: &Args,
    all: &[PersonaConversation],
    shown: &[PersonaConversation],
    hidden: usize,
    how: &str,
) {
    let counted = |number: usize| output::counted(number as u64, "context");
    if all.is_empty() && hidden == 0 {
        output::note(&format!("no context exists yet; {how}"));
    } else if shown.len() < all.len() {
        let size = args.page_size.unwrap_or(PAGE).get();
        let page = args.page.map_or(1, NonZeroUsize::get);
        let pages = output::counted(all.len().div_ceil(size) as u64, "page");
        output::note(&format!("page {page}; {} in all, on {pages}", counted(all.len())));
    }
    if hidden > 0 {
        output::note(&format!("{} deleted or expired; --all lists them too", counted(hidden)));
    }
}
