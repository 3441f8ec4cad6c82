//! Forgets a whole conversation, or one of its threads.

use std::path::Path;

use sottovoce::store::ForgetReport;
use sottovoce::{Config, ConversationStore, FileConversationStore, Scope};

use crate::cmd::forgetting::forget::{What, announce, forget_if_sure};
use crate::cmd::memory::scopes;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;
use sottovoce::store::merged_ranges;

/// How many numbers one read covers.
const STEP: u64 = 4096;

pub(super) async fn forget(
    session: &Session,
    config: &Config,
    store: FileConversationStore,
    yes: bool,
) -> Outcome {
    let what = match &session.thread {
        None => What::All,
        Some(thread) => What::Numbers(numbers_of(&store, thread).await?),
    };
    let nothing = match &what {
        What::All => {
            let plan = store.plan_forget_all().await?;
            let is_gone =
                session.scope == Scope::Default || !scopes::all(config)?.contains(&session.scope);
            plan.is_nothing() && (plan.keeps_context || is_gone)
        }
        What::Numbers(numbers) => numbers.is_empty(),
    };
    if nothing {
        return Err(Failure::input(
            format!("there is nothing to forget in {}", place(session)),
            "`sottovoce scopes` shows all conversations",
        ));
    }
    let whose = format!("{}, ", place(session));
    let Some(forgotten) = forget_if_sure(session, &store, &what, &whose, yes).await? else {
        return Ok(Exit::Done);
    };
    let is_whole = forgotten.plan.is_whole() && !forgotten.plan.keeps_context;
    let is_folder_gone = is_whole && store.remove_forgotten().await?;
    match session.json {
        true => announce::json(&forgotten)?,
        false => say(session, config, &forgotten, is_folder_gone)?,
    }
    Ok(Exit::Done)
}

fn say(
    session: &Session,
    config: &Config,
    forgotten: &ForgetReport,
    is_folder_gone: bool,
) -> Result<(), Failure> {
    announce::done(forgotten);
    output::note(&match (&session.thread, forgotten.plan.keeps_context) {
        (Some(_), _) => format!("{} is forgotten", place(session)),
        (None, true) => format!(
            "the context {} stays, with its name, its personality and its limits; \
             `sottovoce context delete` lets it go",
            session.scope
        ),
        (None, false) => format!(
            "{} is forgotten; that stays recorded, so that no backup brings it back",
            place(session)
        ),
    });
    if is_folder_gone {
        output::note("its folder is gone, with its settings");
    } else if forgotten.plan.is_whole()
        && !forgotten.plan.keeps_context
        && session.scope != Scope::Default
    {
        let below = session.scope.folder()?;
        let folder = below.iter().fold(config.storage_root()?, |folder, name| folder.join(name));
        output::note(&format!(
            "its folder stays, since it holds files that are not the store's or do not open: {}",
            left_in(&folder).join(", ")
        ));
    }
    Ok(())
}

/// Entries in a folder that do not belong to a conversation.
fn left_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_usual = |name: &str| ["head", "lock"].contains(&name) || name.ends_with("_forget.json");
    let mut names: Vec<String> =
        names.filter(|name| !is_usual(name)).map(|name| output::one_line(&name)).collect();
    names.sort();
    names
}

/// The numbers of a thread's messages.
async fn numbers_of(
    store: &FileConversationStore,
    thread: &str,
) -> Result<Vec<std::ops::RangeInclusive<u64>>, Failure> {
    let last = store.read_tail(0).await?.last_seq;
    let mut numbers = Vec::new();
    for first in (1..=last).step_by(STEP as usize) {
        let reading = store.read_seqs(first..=last.min(first + STEP - 1)).await?;
        let said = reading.messages.iter();
        let said = said.filter(|stored| stored.message.thread_id.as_deref() == Some(thread));
        numbers.extend(said.map(|stored| stored.seq..=stored.seq));
    }
    Ok(merged_ranges(numbers))
}

fn place(session: &Session) -> String {
    match &session.thread {
        None => format!("the conversation {}", session.scope),
        Some(thread) => {
            format!("thread {} of the conversation {}", output::one_line(thread), session.scope)
        }
    }
}
