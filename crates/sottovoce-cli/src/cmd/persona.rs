//! `sottovoce persona`

use std::io;

use sottovoce::persona::{self, Persona, PersonaChange, PersonaFailure, Preset, PresetChange};
use sottovoce::{ConversationStore, Error, FileConversationStore};

use crate::cmd::append::parse_note;
use crate::cmd::traits::{Traits, own, persona_row, row, show_persona};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::Cell;
use crate::output::{self, BOLD, DIM, GOOD, Object, moment, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce persona list
  sottovoce persona show calm-counselor
  sottovoce persona create \"Dive Instructor\" --system-prompt-file dive.txt
  sottovoce persona edit \"Dive Instructor\" --expiry-days 30
  sottovoce persona delete \"Dive Instructor\"
  sottovoce context create --preset calm-counselor     and talk to one
  sottovoce --scope dm/42 persona attach calm-counselor    for a conversation that is there";

/// Manages personalities: what the model is told, and how it answers
///
/// Six are built in, and you can create more. Presets and changes are sealed as messages are. A context copies its
/// personality when it is created, so that changing a preset later changes no context.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Lists the presets: the built-in ones, then your own, newest first
    List {
        /// Includes inactive presets
        #[arg(long)]
        all: bool,
    },
    /// Shows all fields of a preset
    Show {
        /// Its id or name
        #[arg(value_name = "ID|NAME")]
        preset: String,
    },
    Create(CreateArgs),
    Edit(EditArgs),
    Delete(DeleteArgs),
    Attach(AttachArgs),
    /// Removes the personality from the conversation of --scope; every message stays
    Detach,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        Action::List { all } => {
            let mut presets = session.presets().await?;
            presets.retain(|preset| all || preset.is_active);
            list_presets(session, &presets)?;
            if presets.is_empty() && !session.json {
                output::note("no preset is active; --all lists those that are not");
            }
        }
        Action::Show { preset } => {
            let presets = session.presets().await?;
            show_preset(session, &Preset::find(presets, &preset)?)?;
        }
        Action::Create(args) => return create(session, args).await,
        Action::Edit(args) => return edit(session, args).await,
        Action::Delete(args) => return delete(session, &args).await,
        Action::Attach(args) => return attach(session, args).await,
        Action::Detach => return detach(session).await,
    }
    Ok(Exit::Done)
}

/// Gives the conversation of --scope a personality
///
/// Its messages and its scope stay. It expires only if --expiry-days is given. The other options change the preset
/// for this conversation.
#[derive(clap::Args)]
pub(crate) struct AttachArgs {
    /// The preset, by id or name
    #[arg(value_name = "ID|NAME")]
    preset: String,

    #[command(flatten)]
    traits: Traits,
}

async fn attach(session: &Session, args: AttachArgs) -> Outcome {
    let change = args.traits.change()?;
    let preset = Preset::find(session.presets().await?, &args.preset)?;
    let (name, id) = (preset.name, preset.id);
    let store = assign(session, (preset.persona, Some(id.clone())), &change, None).await?;
    let scope = store.scope();
    session.tell(object!("scope": scope.to_string(), "attached": id), || {
        format!(
            "{scope} has the personality “{}” from now on; `sottovoce persona detach` takes it away",
            output::one_line(&name)
        )
    })
}

/// Gives the session's conversation a persona, without expiry unless the change sets one, and a name if it has none.
pub(crate) async fn assign(
    session: &Session,
    persona: (Persona, Option<String>),
    change: &PersonaChange,
    name: Option<String>,
) -> Result<FileConversationStore, Failure> {
    // What is not within its limits makes no key and no store.
    let mut wanted = persona.0.clone();
    change.apply(&mut wanted);
    wanted.check()?;
    let store = session.store_or_make().await?;
    if !persona::assign(&store, persona, change, name).await? {
        return Err(Failure::input(
            format!("{} has a personality already", store.scope()),
            "take that away with `sottovoce persona detach`, or change it with `sottovoce context edit`",
        ));
    }
    Ok(store)
}

/// Removes the personality; every message stays.
async fn detach(session: &Session) -> Outcome {
    let store = session.store_or_empty().await?;
    let had_one = store.profile().await?.assigned_persona.is_some();
    if had_one {
        persona::unassign(&session.store_or_make().await?).await?;
    }
    let scope = store.scope();
    session.tell(object!("scope": scope.to_string(), "attached": None::<&str>), || match had_one {
        true => format!("{scope} has no personality any more; its messages stay"),
        false => format!("{scope} has no personality"),
    })
}

/// What is missing for a preset, and where to get it.
const WHAT: &str = "a preset needs a system prompt";
const HELP: &str =
    "give --system-prompt or --system-prompt-file, or start from another preset with --from";

const CREATE_HELP: &str = "\
Examples:
  sottovoce persona create Chef --system-prompt-file chef.txt --temperature 0.4
  sottovoce persona create Strict --from Chef --personality \"Never unkind\"";

/// Creates a preset
///
/// It needs a system prompt, given or from the preset that it starts from. Prints its id.
#[derive(clap::Args)]
#[command(after_help = CREATE_HELP)]
struct CreateArgs {
    /// Its name
    name: String,

    /// Starts from another preset, and keeps the fields that are not given here
    #[arg(long, value_name = "PRESET")]
    from: Option<String>,

    /// The purpose of the preset
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Metadata of the preset; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_note)]
    metadata: Vec<(String, String)>,

    #[command(flatten)]
    traits: Traits,
}

async fn create(session: &Session, args: CreateArgs) -> Outcome {
    let change = args.traits.change()?;
    let mut preset = match &args.from {
        Some(from) => {
            let mut preset = Preset::find(session.presets().await?, from)?;
            change.apply(&mut preset.persona);
            // A copy of an inactive preset is meant to be used.
            preset.is_active = true;
            preset
        }
        None => Preset::new("", own(&change, WHAT, HELP)?),
    };
    preset.name = args.name;
    preset.description = args.description.unwrap_or(preset.description);
    preset.metadata.extend(args.metadata.into_iter().map(|(key, value)| (key, value.into())));
    // Check before a key is created for it.
    preset.check()?;
    let made = session.contexts_or_make()?.create_preset(preset).await?;
    if !session.json {
        output::line(&made.id)?;
    }
    session.tell(preset_row(&made), || {
        format!("`sottovoce context create --preset {}` makes a context of it", made.id)
    })
}

const EDIT_HELP: &str = "\
Examples:
  sottovoce persona edit calm-counselor --temperature 0.2
  sottovoce persona edit \"Sous Chef\" --name \"Head Chef\" --metadata kitchen=hot
  sottovoce persona edit \"Sous Chef\" --active false      no longer offered; contexts made from it stay";

/// Changes the given fields of a preset
///
/// A change of a built-in preset is stored beside it, and `sottovoce persona delete` undoes it. Contexts that were
/// created from it stay as they are.
#[derive(clap::Args)]
#[command(after_help = EDIT_HELP)]
struct EditArgs {
    /// Its id or name
    #[arg(value_name = "ID|NAME")]
    preset: String,

    /// Its new name
    #[arg(long)]
    name: Option<String>,

    /// The purpose of the preset
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Metadata of the preset, `KEY=` removes it; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_note)]
    metadata: Vec<(String, String)>,

    /// Whether it is offered for new contexts
    #[arg(long, value_name = "true|false")]
    active: Option<bool>,

    #[command(flatten)]
    traits: Traits,
}

async fn edit(session: &Session, args: EditArgs) -> Outcome {
    let mut change = PresetChange {
        name: args.name,
        description: args.description,
        persona: args.traits.change()?,
        is_active: args.active,
        metadata: None,
    };
    if change == PresetChange::default() && args.metadata.is_empty() {
        let help = "`sottovoce persona edit --help` lists what can be";
        return Err(Failure::input("nothing is to be changed", help));
    }
    let preset = Preset::find(session.presets().await?, &args.preset)?;
    if !args.metadata.is_empty() {
        let mut metadata = preset.metadata;
        for (key, value) in args.metadata {
            match value.is_empty() {
                true => drop(metadata.remove(&key)),
                false => drop(metadata.insert(key, value.into())),
            }
        }
        change.metadata = Some(metadata);
    }
    let contexts = session.contexts_or_make()?;
    let changed = contexts.update_preset(&preset.id, change).await?;
    session.tell(preset_row(&changed), || format!("changed the preset {}", changed.id))
}

/// Deletes a preset; for a built-in one, undoes the changes
///
/// Asks first. Contexts that were created from it stay as they are.
#[derive(clap::Args)]
struct DeleteArgs {
    /// Its id or name
    #[arg(value_name = "ID|NAME")]
    preset: String,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

async fn delete(session: &Session, args: &DeleteArgs) -> Outcome {
    let preset = Preset::find(session.presets().await?, &args.preset)?;
    let is_built_in = preset.is_built_in();
    if is_built_in && preset.updated_at.is_none() {
        return Err(Error::Persona(PersonaFailure::BuiltIn).into());
    }
    let name = output::one_line(&preset.name);
    let id = &preset.id;
    let (deed, question) = match is_built_in {
        true => (
            format!("take back all changes of the preset {id}"),
            format!("Really take back all changes of “{name}”?"),
        ),
        false => (
            format!("delete the preset {id} for ever"),
            format!("Really delete “{name}” for ever?"),
        ),
    };
    let nothing = "nothing was deleted";
    if !session.agrees(args.yes, &deed, &question, nothing, async || Ok(())).await? {
        return Ok(Exit::Done);
    }
    session.contexts_or_make()?.delete_preset(id).await?;
    session.tell(object!("deleted": id, "isBuiltIn": is_built_in), || match is_built_in {
        true => format!("the preset {id} is what is built in again"),
        false => format!("deleted the preset {id} for ever"),
    })
}

/// A preset in JSON.
fn preset_row(preset: &Preset) -> Object {
    let row = object!(
        "id": preset.id, "name": preset.name, "description": preset.description,
    );
    row.all_of(&persona_row(&preset.persona)).all_of(&object!(
        "isActive": preset.is_active, "isBuiltIn": preset.is_built_in(),
        "metadata": preset.metadata, "createdAt": preset.created_at,
        "updatedAt": preset.updated_at,
    ))
}

fn list_presets(session: &Session, presets: &[Preset]) -> io::Result<()> {
    session.list(presets, preset_row, ["id", "name", "active"], |preset| {
        let active = match preset.is_active {
            true => Cell::new("yes").style(GOOD),
            false => Cell::new("no").style(DIM),
        };
        [Cell::new(&preset.id), Cell::new(&preset.name), active]
    })
}

/// Shows all fields of a preset.
fn show_preset(session: &Session, preset: &Preset) -> io::Result<()> {
    if session.json {
        return output::json(&preset_row(preset));
    }
    let changed = preset.updated_at.is_some();
    let origin = match (preset.is_built_in(), changed) {
        (true, false) => "built in",
        (true, true) => "built in, and changed since",
        (false, _) => "your own",
    };
    output::line(format!("{BOLD}{}{BOLD:#}", output::one_line(&preset.name)))?;
    row("id", &preset.id)?;
    row("origin", origin)?;
    if !preset.description.is_empty() {
        row("description", &preset.description)?;
    }
    row("active", if preset.is_active { "yes" } else { "no" })?;
    for (name, at) in [("created", preset.created_at), ("updated", preset.updated_at)] {
        if let Some(at) = at {
            row(name, &moment(at))?;
        }
    }
    for (key, value) in &preset.metadata {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        row("metadata", &format!("{key}={value}"))?;
    }
    show_persona(&preset.persona)
}
