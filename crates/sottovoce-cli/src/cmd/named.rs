//! `sottovoce context create`, `list`, `update`, `extend`, `delete`: manages contexts by name.

pub(crate) mod shown;

use std::num::NonZeroUsize;

use sottovoce::Scope;
use sottovoce::persona::{
    NewPersonaConversation, PersonaChange, PersonaConversation, PersonaConversationChange, Preset,
};

use crate::cmd::named::shown::{context_row, expiry, relative, show, state, urgency};
use crate::cmd::persona;
use crate::cmd::prune::beginning;
use crate::cmd::traits::{Traits, own};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::Cell;
use crate::output::{self, object};
use crate::session::Session;

/// Actions on contexts by name. A chat does not have them.
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    Create(CreateArgs),
    List(ListArgs),
    Update(UpdateArgs),
    Extend(ExtendArgs),
    Delete(DeleteArgs),
}

pub(super) async fn run(session: &Session, action: Action) -> Outcome {
    match action {
        Action::Create(args) => create(session, args).await,
        Action::List(args) => {
            list_contexts(session, &args, "`sottovoce context create --help` tells how").await
        }
        Action::Update(args) => update(session, args).await,
        Action::Extend(args) => extend(session, &args).await,
        Action::Delete(args) => delete(session, &args).await,
    }
}

const CREATE_HELP: &str = "\
Examples:
  sottovoce context create --preset calm-counselor
  sottovoce context create --preset calm-counselor --expiry-days 30
  sottovoce context create --name Kitchen --system-prompt \"You are a sous chef.\"
  sottovoce --context Kitchen chat                and talk to it
  sottovoce --scope named/mira context create --preset calm-counselor    of a conversation that is there";

/// Creates a context: a conversation in which the model plays a persona
///
/// The persona comes from a preset, changed by the other options, or from --system-prompt. Prints the new id. The
/// context expires after a number of days without an interaction. An expired context can be extended until it is
/// removed. With --scope named/NAME, the existing conversation becomes a context with all its messages, and expires
/// only if --expiry-days is given.
#[derive(clap::Args)]
#[command(after_help = CREATE_HELP)]
pub(crate) struct CreateArgs {
    /// The preset to create it from, by id or name; `sottovoce persona list` shows them
    #[arg(long, value_name = "ID|NAME")]
    preset: Option<String>,

    /// The name; the preset's name or the beginning of the system prompt unless given
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    traits: Traits,
}

async fn create(session: &Session, args: CreateArgs) -> Outcome {
    let change = args.traits.change()?;
    if session.scope != Scope::Default {
        return of_scope(session, args.preset, args.name, &change).await;
    }
    let new = match &args.preset {
        Some(preset) => {
            let preset = Preset::find(session.presets().await?, preset)?;
            NewPersonaConversation::from_preset(&preset, args.name, change)
        }
        None => {
            let persona = own(&change, WHAT, HELP)?;
            let first = persona.system_prompt.trim().lines().next().unwrap_or_default();
            match args.name {
                Some(name) => NewPersonaConversation::new(name, persona),
                None => NewPersonaConversation::new(beginning(first), persona).numbered(),
            }
        }
    };
    // Check before a key is created for it.
    new.check()?;
    let made = session.contexts_or_make()?.create(new).await?;
    if session.json {
        return show(session, &made);
    }
    output::line(&made.id)?;
    output::note(&format!(
        "“{}” {}; `sottovoce --context {} chat` talks to it",
        output::one_line(&made.name),
        expiry(session, &made),
        on_command_line(&made)
    ));
    Ok(Exit::Done)
}

/// Turns the conversation of --scope into a context.
async fn of_scope(
    session: &Session,
    preset: Option<String>,
    name: Option<String>,
    change: &PersonaChange,
) -> Outcome {
    let Scope::Named { id } = &session.scope else {
        return Err(Failure::input(
            "a context is a conversation of a scope named/NAME",
            "give any other conversation a personality with `sottovoce --scope … persona attach`",
        ));
    };
    let name = name.unwrap_or_else(|| id.clone());
    let (persona, preset) = match preset {
        Some(preset) => {
            let preset = Preset::find(session.presets().await?, &preset)?;
            (preset.persona, Some(preset.id))
        }
        None => (own(change, WHAT, HELP)?, None),
    };
    if let Some(contexts) = session.contexts()? {
        contexts.check_name_is_free(&name, id).await?;
    }
    persona::assign(session, (persona, preset), change, Some(name)).await?;
    let made = session.contexts_or_make()?.get(id).await?;
    if session.json {
        return show(session, &made);
    }
    output::line(&made.id)?;
    Ok(Exit::Done)
}

/// How to name the context on a command line: by its name, unless that is ambiguous there.
fn on_command_line(made: &PersonaConversation) -> String {
    let name = &made.name;
    let is_plain = !name.starts_with('-') && output::one_line(name) == *name;
    let quoted = shlex::try_quote(name).ok().filter(|_| is_plain);
    quoted.map_or_else(|| made.id.clone(), |name| name.into_owned())
}

/// What is missing for a context without a preset, and where to get it.
const WHAT: &str = "a context needs a preset or a system prompt";
const HELP: &str = "give --preset, --system-prompt or --system-prompt-file; `sottovoce persona list` shows the presets";

/// Contexts per page.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(19);

const LIST_HELP: &str = "\
Examples:
  sottovoce context list
  sottovoce context list --all --page 2
  sottovoce --json context list            with each one's personality";

/// Lists the open contexts, newest first
#[derive(clap::Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct ListArgs {
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

/// Lists contexts. `how` describes how to create the first one.
pub(crate) async fn list_contexts(session: &Session, args: &ListArgs, how: &str) -> Outcome {
    let contexts = session.contexts()?.ok_or_else(|| session.nothing())?;
    let listed = contexts.list().await?;
    let (mut all, unreadable) = (listed.contexts, listed.unreadable);
    let total = all.len();
    all.retain(|context| args.all || context.is_open());
    let hidden = total - all.len();
    let shown = page(&all, args);
    let now = session.clock().now().timestamp();
    let names = ["id", "name", "messages", "expires", "state"];
    session.list(shown, context_row, names, |context| {
        let (state, style) = state(context);
        let expires = match context.assigned_persona.persona.is_lasting() {
            true => "never".to_owned(),
            false => relative(context.expires_at, now),
        };
        [
            Cell::new(&context.id),
            Cell::new(&context.name).at_most(20),
            Cell::number(context.messages),
            Cell::new(&expires).style(urgency(context)),
            Cell::new(state).style(style),
        ]
    })?;
    if !session.json {
        say(args, &all, shown, hidden, how);
    }
    let error = "its settings cannot be read";
    for id in &unreadable {
        let scope = Scope::Named { id: id.clone() }.to_string();
        match session.json {
            true => output::json(&object!("id": id, "scope": scope, "error": error))?,
            false => output::warning(&format!("{scope}: {error}; `sottovoce verify` tells more")),
        }
    }
    Ok(Exit::of(unreadable.is_empty()))
}

/// The requested page, or all contexts without a page.
fn page<'a>(all: &'a [PersonaConversation], args: &ListArgs) -> &'a [PersonaConversation] {
    if args.page.is_none() && args.page_size.is_none() {
        return all;
    }
    let before = args.page.map_or(0, |page| page.get() - 1);
    all.chunks(args.page_size.unwrap_or(PAGE).get()).nth(before).unwrap_or_default()
}

/// Reports what the table leaves out.
fn say(
    args: &ListArgs,
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

const UPDATE_HELP: &str = "\
Examples:
  sottovoce context update Kitchen --temperature 0.9 --max-tokens 400
  sottovoce context update Kitchen --name \"Kitchen, winter\"
  sottovoce context update context-mep92q9v-mkorf9 --active true      takes a deleted one back";

/// Changes the given fields of a context
///
/// Later prompts use the new personality; messages stay. A change counts as an interaction, so the time until expiry
/// starts again.
#[derive(clap::Args)]
#[command(after_help = UPDATE_HELP)]
pub(crate) struct UpdateArgs {
    /// Its id, or its name if that is unique
    #[arg(value_name = "ID|NAME")]
    target: String,

    /// The new name
    #[arg(long)]
    name: Option<String>,

    /// `false` deletes the context, `true` restores it
    #[arg(long, value_name = "true|false")]
    active: Option<bool>,

    #[command(flatten)]
    traits: Traits,
}

/// Postpones the expiry of a context
///
/// By the context's own days unless given. Counts from the expiry, or from now if it has expired.
#[derive(clap::Args)]
pub(crate) struct ExtendArgs {
    /// Its id, or its name if that is unique
    #[arg(value_name = "ID|NAME")]
    target: String,

    /// The number of days
    #[arg(long, value_name = "N")]
    days: Option<u32>,
}

async fn update(session: &Session, args: UpdateArgs) -> Outcome {
    let change = PersonaConversationChange {
        name: args.name,
        persona: args.traits.change()?,
        is_active: args.active,
    };
    if change == PersonaConversationChange::default() {
        let help = "`sottovoce context update --help` lists what can be";
        return Err(Failure::input("nothing is to be changed", help));
    }
    let (contexts, found) = session.find_context(&args.target).await?;
    let changed = contexts.update(&found.id, change).await?;
    session.tell(context_row(&changed), || {
        let (id, (state, _), expiry) = (&changed.id, state(&changed), expiry(session, &changed));
        format!("changed the context {id}; it is {state} and {expiry}")
    })
}

async fn extend(session: &Session, args: &ExtendArgs) -> Outcome {
    let (contexts, found) = session.find_context(&args.target).await?;
    let extended = contexts.extend(&found.id, args.days).await?;
    session.tell(context_row(&extended), || {
        format!("the context {} {}", extended.id, expiry(session, &extended))
    })
}

const DELETE_HELP: &str = "\
Examples:
  sottovoce context delete Kitchen
  sottovoce context delete Kitchen --now --yes
  sottovoce import backup BACKUP                  brings back what was removed";

/// Deletes a context: nobody can talk to it any more, and `sottovoce cleanup` removes it some days later
///
/// Until then `sottovoce context update --active true` restores it. It is removed only after a sealed backup.
#[derive(clap::Args)]
#[command(after_help = DELETE_HELP)]
pub(crate) struct DeleteArgs {
    /// Its id, or its name if that is unique
    #[arg(value_name = "ID|NAME")]
    target: String,

    /// Removes it at once after backing it up, and prints the backup's path
    #[arg(long)]
    now: bool,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

async fn delete(session: &Session, args: &DeleteArgs) -> Outcome {
    let config = session.config()?;
    let (contexts, found) = session.find_context(&args.target).await?;
    let id = found.id.clone();
    let deed = if args.now { "remove" } else { "delete" };
    let show = async || {
        let (name, messages) = (output::one_line(&found.name), found.messages);
        let messages = output::counted(messages, "message");
        output::note(&format!("{id}: “{name}”, {messages}, {}", expiry(session, &found)));
        Ok(())
    };
    let (what, question) = (format!("{deed} the context {id}"), format!("Really {deed} it?"));
    if !session.agrees(args.yes, &what, &question, "nothing was deleted", show).await? {
        return Ok(Exit::Done);
    }
    let backup = match args.now {
        true => Some(contexts.remove(&id).await?),
        false => {
            contexts.delete(&id).await?;
            None
        }
    };
    let row = object!("id": id, "removed": args.now, "backup": backup);
    session.tell(row, || match backup {
        Some(_) => {
            format!("removed the context {id}; `sottovoce import backup` brings it back from")
        }
        None => {
            let days = output::counted(config.personas.remove_after_days.into(), "day");
            format!(
                "deleted the context {id}; `sottovoce cleanup` removes it after {days}\n\
                 until then `sottovoce context update {id} --active true` takes it back"
            )
        }
    })?;
    if let Some(backup) = backup.filter(|_| !session.json) {
        output::line(backup.to_string_lossy())?;
    }
    Ok(Exit::Done)
}
