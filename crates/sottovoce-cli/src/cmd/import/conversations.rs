//! Taking over what another program keeps as many conversations.

use serde::Serialize;
use sottovoce::{
    ConversationReport, ForeignConversation, ForeignConversations, ForeignPresets, PresetReport,
    Progress, Refusal, Scope,
};

use super::{advance, list, row};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, DIM, WARN};
use crate::session::{Session, Stores};

/// Such an import chooses the conversations itself.
pub(super) fn check(session: &Session) -> Result<(), Failure> {
    if session.scope == Scope::Default && session.thread.is_none() {
        return Ok(());
    }
    Err(Failure::input(
        "this import puts each conversation into a scope of its own",
        "leave out --scope and --thread",
    ))
}

/// What an import was asked for.
pub(super) struct Wishes {
    pub(super) dry_run: bool,
    pub(super) skip_expired: bool,
}

/// Reads all that a source has, and keeps it.
pub(super) async fn take_over<R>(
    session: &Session,
    wishes: Wishes,
    read: impl FnOnce(Box<dyn Fn(Progress) + Send>) -> R,
) -> Outcome
where
    R: Future<Output = sottovoce::Result<ForeignConversations>>,
{
    check(session)?;
    let bar = output::progress(Some(0), "reading");
    let shown = bar.clone();
    let mut interrupt = Interrupt::listen()?;
    // Listening, so that a signal does not end the process before a private copy of the source is gone.
    let found = tokio::select! {
        found = read(Box::new(move |progress| advance(&shown, progress))) => Some(found),
        _ = interrupt.heard() => None,
    };
    bar.finish_and_clear();
    let Some(found) = found else {
        output::note("interrupted; nothing was taken yet");
        return Ok(Exit::Interrupted);
    };
    keep(session, found?, wishes).await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConversationRow<'a> {
    conversation: String,
    thread: Option<&'a str>,
    taken: usize,
    already_there: usize,
    forgotten: usize,
    refused: usize,
    expired: bool,
    snapshots: usize,
    artifacts: usize,
}

/// What all conversations came to.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Total {
    system: &'static str,
    dry_run: bool,
    conversations: usize,
    taken: usize,
    already_there: usize,
    forgotten: usize,
    refused: usize,
    expired: usize,
    skipped_expired: usize,
    snapshots: usize,
    artifacts: usize,
    presets: usize,
    presets_already_there: usize,
    passed_over: usize,
}

/// Puts each conversation into its scope, and tells what came of it.
async fn keep(session: &Session, mut found: ForeignConversations, wishes: Wishes) -> Outcome {
    let Wishes { dry_run, skip_expired } = wishes;
    let config = session.config()?;
    let is_empty = found.conversations.is_empty() && found.presets.presets.is_empty();
    let stores = if dry_run || is_empty {
        session.stores_or_empty(&config)?
    } else {
        session.stores_or_make(&config)?
    };
    let mut total = Total {
        system: found.system,
        dry_run,
        skipped_expired: if skip_expired { found.skip_expired() } else { 0 },
        passed_over: found.passed_over,
        ..Total::default()
    };
    let mut refused = std::mem::take(&mut found.refused);
    let mut interrupt = Interrupt::listen()?;
    for conversation in found.conversations {
        let report = tokio::select! {
            report = take(&stores, conversation, dry_run) => report?,
            _ = interrupt.heard() => {
                output::note(
                    "interrupted; what was taken is kept, and the same command goes on from there",
                );
                return Ok(Exit::Interrupted);
            }
        };
        total.add(&report);
        tell(session, &report, dry_run)?;
        refused.extend(report.messages.refused);
    }
    if !found.presets.presets.is_empty() {
        // So few that nobody waits for them.
        let report = take_presets(&stores, found.presets, dry_run).await?;
        total.presets = report.taken;
        total.presets_already_there = report.already_there;
        total.forgotten += report.forgotten;
        refused.extend(report.refused);
    }
    finish(session, total, &refused)
}

/// Tells what all of them came to.
pub(super) fn finish(session: &Session, mut total: Total, refused: &[Refusal]) -> Outcome {
    total.refused = refused.len();
    end(session, &total, refused)?;
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Found })
}

async fn take(
    stores: &Stores<'_>,
    conversation: ForeignConversation,
    dry_run: bool,
) -> Result<ConversationReport, Failure> {
    let store = stores.open(conversation.scope.clone()).await?;
    if dry_run {
        return Ok(conversation.preview(&store).await?);
    }
    let bar = output::progress(Some(0), "keeping");
    let report = conversation.import_into(&store, |progress| advance(&bar, progress)).await;
    bar.finish_and_clear();
    Ok(report?)
}

async fn take_presets(
    stores: &Stores<'_>,
    presets: ForeignPresets,
    dry_run: bool,
) -> Result<PresetReport, Failure> {
    let store = stores.open(Scope::Default).await?;
    Ok(if dry_run { presets.preview(&store).await? } else { presets.import_into(&store).await? })
}

impl Total {
    pub(super) fn of(system: &'static str) -> Self {
        Self { system, ..Self::default() }
    }

    pub(super) fn add(&mut self, report: &ConversationReport) {
        let messages = &report.messages;
        self.conversations += 1;
        self.taken += messages.taken;
        self.already_there += messages.already_there;
        self.forgotten += messages.forgotten;
        self.expired += usize::from(report.expired);
        self.snapshots += report.snapshots;
        self.artifacts += report.artifacts;
        self.passed_over += messages.passed_over;
    }
}

pub(super) fn tell(
    session: &Session,
    report: &ConversationReport,
    dry_run: bool,
) -> std::io::Result<()> {
    let messages = &report.messages;
    let (conversation, thread) = (report.scope.to_string(), report.thread.as_deref());
    let refused = messages.refused.len();
    if session.json {
        return output::json(&ConversationRow {
            conversation,
            thread,
            taken: messages.taken,
            already_there: messages.already_there,
            forgotten: messages.forgotten,
            refused,
            expired: report.expired,
            snapshots: report.snapshots,
            artifacts: report.artifacts,
        });
    }
    let thread = thread.map(|thread| format!(" {DIM}thread{DIM:#} {}", output::printable(thread)));
    let mut words = format!(
        "{conversation}{}  {} {}",
        thread.unwrap_or_default(),
        verb(dry_run),
        output::messages(messages.taken)
    );
    add(
        &mut words,
        &[
            (messages.already_there, "already there"),
            (messages.forgotten, "forgotten since they were taken"),
            (refused, "refused"),
        ],
    );
    add_counted(&mut words, report.snapshots, "snapshot");
    add_counted(&mut words, report.artifacts, "artifact");
    if report.expired {
        words.push_str(&format!(", {WARN}expired{WARN:#}"));
    }
    output::line(words)
}

fn end(session: &Session, total: &Total, refused: &[Refusal]) -> std::io::Result<()> {
    if session.json {
        refused.iter().try_for_each(|refusal| output::json(&row(refusal)))?;
        return output::json(total);
    }
    list(refused)?;
    let mut words = format!(
        "{BOLD}{} {} in {}{BOLD:#}",
        verb(total.dry_run),
        output::messages(total.taken),
        output::counted(total.conversations as u64, "conversation"),
    );
    add_counted(&mut words, total.snapshots, "snapshot");
    add_counted(&mut words, total.artifacts, "artifact");
    add_counted(&mut words, total.presets, "preset");
    add(
        &mut words,
        &[
            (total.already_there, "already there"),
            (total.presets_already_there, "presets already there"),
            (total.forgotten, "forgotten since they were taken"),
            (total.refused, "refused"),
            (total.expired, "of the conversations expired"),
            (total.skipped_expired, "left out because they expired"),
            (total.passed_over, "other entries passed over"),
        ],
    );
    output::line(words)
}

fn verb(dry_run: bool) -> &'static str {
    if dry_run { "would take" } else { "took" }
}

fn add_counted(words: &mut String, number: usize, what: &str) {
    if number > 0 {
        words.push_str(&format!(", {}", output::counted(number as u64, what)));
    }
}

fn add(words: &mut String, numbers: &[(usize, &str)]) {
    for (number, what) in numbers.iter().filter(|(number, _)| *number > 0) {
        words.push_str(&format!(", {number} {what}"));
    }
}
