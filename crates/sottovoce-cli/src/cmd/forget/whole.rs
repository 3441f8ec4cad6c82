//! Forgetting a whole conversation, or one of its threads.

use std::ops::RangeInclusive;

use sottovoce::{Config, ConversationStore, Document, FileConversationStore};

use super::{Done, merged};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

/// How many numbers are looked through at once.
const STEP: u64 = 4096;

pub(super) async fn forget(
    session: &Session,
    config: &Config,
    store: FileConversationStore,
    sure: bool,
) -> Outcome {
    let last = store.read_tail(0).await?.last_seq;
    let (mut messages, mut numbers) = (0, Vec::new());
    for first in (1..=last).step_by(STEP as usize) {
        let reading = store.read_seqs(first..=last.min(first + STEP - 1)).await?;
        for stored in &reading.messages {
            if session.thread.is_none() || stored.message.thread_id == session.thread {
                messages += 1;
                numbers.push(stored.seq..=stored.seq);
            }
        }
    }
    // Not only what can be read now: of a conversation that is forgotten nothing is to come back.
    if session.thread.is_none() && last > 0 {
        numbers = vec![1..=last];
    }
    let snapshots = match session.thread {
        None => store.profile().await?.snapshots().map(str::to_owned).collect(),
        Some(_) => Vec::new(),
    };
    let profile = store.profile().await?;
    let artifacts: Vec<String> = match session.thread {
        None => profile.artifacts().map(str::to_owned).collect(),
        Some(_) => Vec::new(),
    };
    let is_named = session.thread.is_none() && profile.is_described();
    let hidden = store.stats().await?.hidden;
    let others = !snapshots.is_empty() || !artifacts.is_empty() || is_named;
    if messages == 0 && hidden == 0 && !others {
        return Err(Failure::input(
            format!("there is nothing to forget in {}", place(session)),
            "`sottovoce scopes` shows what there is",
        ));
    }
    let beside = match (artifacts.len() as u64, is_named) {
        (0, false) => String::new(),
        (0, true) => ", its title and tags".to_owned(),
        (many, false) => format!(", {}", output::counted(many, "artifact")),
        (many, true) => format!(", {}, its title and tags", output::counted(many, "artifact")),
    };
    let what = format!(
        "delete {}, {} with all snapshots and summaries made of them{beside}",
        place(session),
        output::messages(messages)
    );
    if !sure {
        session.check_attended(&format!("{what}, for ever"))?;
        if !output::confirmed(&format!("Really {what}, for ever?"))? {
            output::note("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    let ranges: Vec<RangeInclusive<u64>> = merged(numbers);
    let forgotten = store.forget(&ranges).await?;
    for id in snapshots {
        store.delete_snapshot(&id).await?;
    }
    if !artifacts.is_empty() {
        store.delete_artifacts(&artifacts).await?;
    }
    if is_named {
        store.change_profile(Box::new(sottovoce::Profile::undescribe)).await?;
    }
    if session.thread.is_none() && store.read_document(Document::Calibration).await?.is_some() {
        // How long its texts were tells which languages were spoken.
        store.write_document(Document::Calibration, b"{}").await?;
    }
    drop(store);
    if session.json {
        output::json(&Done { artifacts: artifacts.len(), ..Done::of(&forgotten) })?;
        return Ok(Exit::Done);
    }
    output::skipped(&forgotten.left);
    output::note(&format!(
        "deleted {} of {} for ever",
        output::messages(forgotten.removed.len()),
        place(session)
    ));
    if !artifacts.is_empty() {
        output::note(&format!(
            "deleted {} for ever",
            output::counted(artifacts.len() as u64, "artifact")
        ));
    }
    if session.thread.is_none() {
        output::note(&format!(
            "that they were forgotten stays recorded in {}, so that no backup brings them back",
            session.folder(config)?.display()
        ));
    }
    Ok(Exit::Done)
}

fn place(session: &Session) -> String {
    match &session.thread {
        None => format!("the conversation {}", session.scope),
        Some(thread) => format!("thread {thread} of the conversation {}", session.scope),
    }
}
