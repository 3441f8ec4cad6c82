//! `sottovoce conversations rename`, `tag` and `untag`.

use std::sync::Arc;

use sottovoce::ConversationStore;
use sottovoce::store::ProfileChange;

use crate::cmd::memory::conversations::Row;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

/// The longest title and tag in characters.
const LONGEST_TITLE: usize = 200;
const LONGEST_TAG: usize = 64;

/// Sets the title of the conversation
#[derive(clap::Args)]
pub(super) struct Rename {
    /// The title; several words need no quotes
    #[arg(required_unless_present_any = ["clear", "propose"])]
    title: Vec<String>,

    /// Asks the model for a title from the newest messages; forgetting a message removes it
    #[arg(long, conflicts_with_all = ["title", "clear"])]
    propose: bool,

    /// Removes the title
    #[arg(long, conflicts_with = "title")]
    clear: bool,
}

pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    let tag = text.trim();
    let is_fit = !tag.is_empty() && tag.chars().count() <= LONGEST_TAG;
    if !is_fit || tag.contains(|c: char| c.is_control() || c == ',') {
        return Err(format!("at most {LONGEST_TAG} characters, without commas or line breaks"));
    }
    Ok(tag.to_owned())
}

pub(super) async fn rename(session: &Session, args: Rename) -> Outcome {
    if args.propose {
        return propose(session).await;
    }
    let title = output::one_line(args.title.join(" ").trim());
    if !args.clear && title.is_empty() {
        return Err(Failure::input("the title is empty", "say --clear to take the title away"));
    }
    if title.chars().count() > LONGEST_TITLE {
        return Err(Failure::input(
            format!("the title is longer than {LONGEST_TITLE} characters"),
            "give a shorter one",
        ));
    }
    let title = Some(title).filter(|_| !args.clear);
    change(session, Box::new(move |profile| profile.rename(title.clone()))).await
}

async fn propose(session: &Session) -> Outcome {
    let config = session.config()?;
    let store = Arc::new(session.store(&config).await?);
    let conversation = session.conversation(&config, Arc::clone(&store))?;
    let bar = output::progress(None, "the model looks for a title");
    let mut interrupt = Interrupt::listen()?;
    interrupt.or("", conversation.propose_title()).await??;
    bar.finish_and_clear();
    drop((conversation, store));
    let row = Row::of(&session.stores_or_empty(&config)?, session.scope.clone()).await?;
    row.show(session)?;
    Ok(Exit::Done)
}

pub(super) async fn tag(session: &Session, names: Vec<String>) -> Outcome {
    change(session, Box::new(move |profile| profile.tags.extend(names.iter().cloned()))).await
}

pub(super) async fn untag(session: &Session, names: Vec<String>) -> Outcome {
    let config = session.config()?;
    let there = session.store_or_empty(&config).await?.profile().await?;
    let absent: Vec<&str> =
        names.iter().filter(|name| !there.tags.contains(*name)).map(String::as_str).collect();
    if !absent.is_empty() {
        let tags: Vec<&str> = there.tags.iter().map(String::as_str).collect();
        let has = if tags.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", tags.join(", "))
        };
        return Err(Failure::input(
            format!("it has no tag {}", absent.join(", ")),
            output::one_line(&has),
        ));
    }
    change(session, Box::new(move |profile| profile.tags.retain(|tag| !names.contains(tag)))).await
}

/// Changes the conversation's settings, and shows the result.
async fn change(session: &Session, change: ProfileChange) -> Outcome {
    let config = session.config()?;
    let stores = session.stores_or_make(&config)?;
    let store = stores.open(session.scope.clone()).await?;
    store.change_profile(change).await?;
    drop(store);
    let row = Row::of(&stores, session.scope.clone()).await?;
    if row.messages == 0 && !session.json {
        output::note(&format!("nothing has been said in {} yet", row.scope));
    }
    row.show(session)?;
    Ok(Exit::Done)
}
