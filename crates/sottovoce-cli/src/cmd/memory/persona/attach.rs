//! `sottovoce persona attach` and `sottovoce persona detach`

use serde::Serialize;
use sottovoce::persona::{self, Persona, PersonaChange, Preset};
use sottovoce::{Config, ConversationStore, FileConversationStore, Scope};

use crate::cmd::memory::persona::traits::Traits;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

/// Gives the conversation of --scope a personality
///
/// Its messages and its scope stay. It expires only if --expiry-days is given. The other options change the preset
/// for this conversation.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The preset, by id or name
    #[arg(value_name = "ID|NAME")]
    preset: String,

    #[command(flatten)]
    traits: Traits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    scope: String,
    attached: Option<&'a str>,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let change = args.traits.change()?;
    let preset = Preset::find(session.presets(&config).await?, &args.preset)?;
    let (name, id) = (preset.name, preset.id);
    let store = attach(session, &config, (preset.persona, Some(id.clone())), &change, None).await?;
    let scope = store.scope();
    match session.json {
        true => output::json(&Row { scope: scope.to_string(), attached: Some(&id) })?,
        false => output::note(&format!(
            "{scope} has the personality “{}” from now on; `sottovoce persona detach` takes it away",
            output::one_line(&name)
        )),
    }
    Ok(Exit::Done)
}

/// Gives the session's conversation a persona, without expiry unless the change sets one, and a name if it has none.
pub(crate) async fn attach(
    session: &Session,
    config: &Config,
    persona: (Persona, Option<String>),
    change: &PersonaChange,
    name: Option<String>,
) -> Result<FileConversationStore, Failure> {
    // What is not within its limits makes no key and no store.
    let mut wanted = persona.0.clone();
    change.apply(&mut wanted);
    wanted.check()?;
    let store = session.store_or_make(config).await?;
    if !persona::assign(&store, persona, change, name).await? {
        return Err(Failure::input(
            format!("{} has a personality already", store.scope()),
            "take that away with `sottovoce persona detach`, or change it with `sottovoce context edit`",
        ));
    }
    Ok(store)
}

/// Removes the personality; every message stays.
pub(super) async fn detach(session: &Session) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_empty(&config).await?;
    let had_one = store.profile().await?.assigned_persona.is_some();
    if had_one {
        let store = session.store_or_make(&config).await?;
        persona::unassign(&store).await?;
    }
    let scope: &Scope = store.scope();
    match (session.json, had_one) {
        (true, _) => output::json(&Row { scope: scope.to_string(), attached: None })?,
        (false, true) => {
            output::note(&format!("{scope} has no personality any more; its messages stay"))
        }
        (false, false) => output::note(&format!("{scope} has no personality")),
    }
    Ok(Exit::Done)
}
