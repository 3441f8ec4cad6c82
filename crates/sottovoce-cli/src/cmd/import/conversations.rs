//! Imports of many conversations at once.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::{StreamExt, stream};
use indicatif::ProgressBar;
use serde::Serialize;
use sottovoce::Scope;
use sottovoce::import::{
    ConversationReport, ImportedConversation, ImportedConversations, ImportedLimits, LeftOut,
    PassedOver, Refusal,
};
use sottovoce::store::Retention;
use sottovoce_import::Reader;

use crate::cmd::import::{IMPORTED, list, list_json, passed_over, read};
use crate::cmd::recall::understand_import;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, DIM, WARN, duration, object};
use crate::session::{Session, Stores};

/// How many conversations are imported at once. Most of the time goes into waiting for the disk, which makes what several of
/// them write durable together.
const AT_ONCE: usize = 8;

/// Refuses `--scope` and `--thread`, since such an import chooses them itself.
pub(super) fn check(session: &Session) -> Result<(), Failure> {
    if session.scope == Scope::Default && session.thread.is_none() {
        return Ok(());
    }
    Err(Failure::input(
        "this import puts each conversation into a scope of its own",
        "leave out --scope and --thread",
    ))
}

/// The options of an import.
pub(super) struct Wishes {
    pub(super) dry_run: bool,
    pub(super) skip_expired: bool,
    /// Whether to import the source's limits, and whether that is confirmed already.
    pub(super) limits: Limits,
}

/// Reads a source and imports it.
pub(super) async fn import_all(
    session: &Session,
    wishes: Wishes,
    source: impl Reader<Output = ImportedConversations>,
) -> Outcome {
    check(session)?;
    keep(session, read(source).await?, wishes).await
}

/// The sum of all results.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Total {
    system: &'static str,
    dry_run: bool,
    conversations: usize,
    taken: usize,
    already_there: usize,
    forgotten: usize,
    removed: usize,
    refused: usize,
    expired: usize,
    skipped_expired: usize,
    snapshots: usize,
    artifacts: usize,
    presets: usize,
    presets_already_there: usize,
    presets_replaced: Vec<String>,
    hidden: u64,
    passed_over: usize,
    passed_over_kinds: PassedOver,
    #[serde(skip)]
    limits: Option<ImportedLimits>,
}

/// Imports each conversation into its scope, and shows the result.
async fn keep(session: &Session, mut found: ImportedConversations, wishes: Wishes) -> Outcome {
    let Wishes { dry_run, skip_expired, limits } = wishes;
    let is_empty = found.conversations.is_empty() && found.presets.presets.is_empty();
    let stores =
        if dry_run || is_empty { session.stores_or_empty()? } else { session.stores_or_make()? };
    let mut total = Total {
        dry_run,
        skipped_expired: if skip_expired { found.skip_expired() } else { 0 },
        passed_over: found.passed_over.total(),
        passed_over_kinds: found.passed_over.clone(),
        ..Total::of(found.system)
    };
    if limits.are_wanted {
        if !dry_run && !limits.confirm(found.limits(), found.over_limits())? {
            return Ok(Exit::Interrupted);
        }
        found.with_limits();
    }
    let mut refused = std::mem::take(&mut found.refused);
    let mut interrupt = Interrupt::listen()?.and_hangup_if_heeded()?;
    let all = found.conversations.iter().map(|conversation| conversation.messages.messages.len());
    let bar = output::progress(Some(all.sum::<usize>() as u64), "keeping");
    let at_once = if have_scopes_of_their_own(&found.conversations) { AT_ONCE } else { 1 };
    let taken = found.conversations.into_iter();
    let taken = taken.map(|conversation| take(&stores, conversation, dry_run, &bar));
    let mut taken = stream::iter(taken).buffered(at_once);
    let mut scopes = Vec::new();
    while let Some(report) = interrupt.or(IMPORTED, taken.next()).await? {
        let report = report?;
        total.add(&report);
        if report.messages.taken > 0 && !dry_run {
            scopes.push(report.scope.clone());
        }
        bar.suspend(|| tell_conversation(session, &report, dry_run))?;
        refused.extend(report.messages.refused);
    }
    bar.finish_and_clear();
    if !found.presets.presets.is_empty() {
        // There are few, so no progress is shown.
        let store = stores.open(Scope::Default).await?;
        let report = match dry_run {
            true => found.presets.preview(&store).await?,
            false => found.presets.import_into(&store).await?,
        };
        total.presets = report.taken;
        total.presets_already_there = report.already_there;
        total.presets_replaced = report.replaced;
        total.forgotten += report.forgotten;
        refused.extend(report.refused);
    }
    let exit = finish(session, total, &refused)?;
    for scope in scopes {
        understand_import(Arc::new(stores.open(scope).await?)).await;
    }
    Ok(exit)
}

/// Whether no two conversations go into one scope, where the first has to come first.
fn have_scopes_of_their_own(conversations: &[ImportedConversation]) -> bool {
    let mut scopes = HashSet::new();
    conversations.iter().all(|conversation| scopes.insert(&conversation.scope))
}

async fn take(
    stores: &Stores<'_>,
    conversation: ImportedConversation,
    dry_run: bool,
    bar: &ProgressBar,
) -> Result<ConversationReport, Failure> {
    let store = stores.open(conversation.scope.clone()).await?;
    if dry_run {
        return Ok(conversation.preview(&store).await?);
    }
    let (all, shown) = (conversation.messages.messages.len(), AtomicUsize::new(0));
    let show = |done: usize| {
        let before = shown.fetch_max(done, Relaxed);
        bar.inc(done.saturating_sub(before) as u64);
    };
    let report = conversation.import_into(&store, |progress| show(progress.done)).await?;
    show(all);
    Ok(report)
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
        self.removed += messages.removed;
        self.expired += usize::from(report.expired);
        self.snapshots += report.snapshots;
        self.artifacts += report.artifacts;
        self.passed_over += messages.passed_over.total();
        self.passed_over_kinds.extend(&messages.passed_over);
        self.hidden += report.hidden;
        let limits = report.left_out.iter().find_map(|left_out| match left_out {
            LeftOut::Limits(limits) => Some(*limits),
            _ => None,
        });
        self.limits = self.limits.or(limits);
    }
}

pub(super) fn tell_conversation(
    session: &Session,
    report: &ConversationReport,
    dry_run: bool,
) -> std::io::Result<()> {
    let messages = &report.messages;
    let (conversation, thread) = (report.scope.to_string(), report.thread.as_deref());
    let refused = messages.refused.len();
    if session.json {
        let row = object!(
            "conversation": conversation, "thread": thread, "taken": messages.taken,
            "alreadyThere": messages.already_there, "forgotten": messages.forgotten,
            "removed": messages.removed, "refused": refused, "expired": report.expired,
            "snapshots": report.snapshots, "artifacts": report.artifacts, "hidden": report.hidden,
        );
        let limits = (report.limits != Retention::FOREVER).then_some(report.limits);
        let left_out = Some(&report.left_out).filter(|left_out| !left_out.is_empty());
        let row = row.maybe("limits", limits).maybe("leftOut", left_out);
        let row = row.and("passedOver", &messages.passed_over.total());
        return output::json(&row.and("passedOverKinds", &messages.passed_over));
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
            (messages.forgotten, "forgotten here"),
            (messages.removed, "forgotten there, and now here"),
            (refused, "refused"),
        ],
    );
    add_counted(&mut words, report.snapshots, "snapshot");
    add_counted(&mut words, report.artifacts, "artifact");
    if report.expired {
        words.push_str(&format!(", {WARN}expired{WARN:#}"));
    }
    if report.hidden > 0 {
        let hidden = output::counted(report.hidden, "message");
        let limits = limits_in_words(report.limits.into());
        words.push_str(&format!("; {WARN}{hidden} hidden{WARN:#} by the limits here: {limits}"));
    } else if report.limits != Retention::FOREVER {
        words.push_str(&format!("; limits here: {}", limits_in_words(report.limits.into())));
    }
    for left_out in &report.left_out {
        match left_out {
            LeftOut::Persona => words.push_str(&format!(
                "; {WARN}left out{WARN:#} its persona, since this is another conversation"
            )),
            LeftOut::Preset { id } => words.push_str(&format!(
                "; {WARN}left out{WARN:#} the preset {}, since there is one of that id, or no room",
                output::printable(id)
            )),
            _ => {}
        }
    }
    output::line(words)
}

/// Shows the sum of all results.
pub(super) fn finish(session: &Session, mut total: Total, refused: &[Refusal]) -> Outcome {
    total.refused = refused.len();
    let exit = Exit::of(refused.is_empty());
    if session.json {
        list_json(refused)?;
        output::json(&total)?;
        return Ok(exit);
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
            (total.forgotten, "forgotten here"),
            (total.removed, "forgotten there, and now here"),
            (total.refused, "refused"),
            (total.expired, "of the conversations expired"),
            (total.skipped_expired, "left out because they expired"),
        ],
    );
    words.push_str(&passed_over(&total.passed_over_kinds));
    output::line(words)?;
    for id in &total.presets_replaced {
        output::note(&format!(
            "the preset {} is built in; the imported text now stands in its place",
            output::printable(id)
        ));
    }
    if let Some(limits) = total.limits {
        output::note(&format!(
            "the source's limits ({}) were not imported, so that all messages are kept; --with-limits imports them",
            limits_in_words(limits)
        ));
    }
    Ok(exit)
}

pub(super) fn verb(dry_run: bool) -> &'static str {
    if dry_run { "would import" } else { "imported" }
}

fn add_counted(words: &mut String, number: usize, what: &str) {
    if number > 0 {
        words.push_str(&format!(", {}", output::counted(number as u64, what)));
    }
}

pub(super) fn add(words: &mut String, numbers: &[(usize, &str)]) {
    for (number, what) in numbers.iter().filter(|(number, _)| *number > 0) {
        words.push_str(&format!(", {number} {what}"));
    }
}

/// Options for a source's limits.
#[derive(clap::Args, Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// Also imports the source's limits: messages that exceed them are hidden, and deleted with the next append
    #[arg(long = "with-limits")]
    pub(super) are_wanted: bool,

    /// Imports the limits without asking
    #[arg(long, requires = "are_wanted")]
    yes: bool,
}

impl Limits {
    /// Asks for confirmation, showing how many messages the limits hide.
    pub(super) fn confirm(self, limits: ImportedLimits, over: usize) -> Result<bool, Failure> {
        let hidden = match over {
            0 => String::new(),
            over => format!(", which hide at least {} at once", output::messages(over)),
        };
        self.ask(&format!(
            "each conversation gets the limits {}{hidden}; hidden messages are deleted with the next append",
            limits_in_words(limits)
        ))
    }

    /// Asks for confirmation before the source is read.
    pub(super) fn confirm_those_of(self, source: &str) -> Result<bool, Failure> {
        self.ask(&format!(
            "each conversation gets the limits of {source}: messages that exceed them, here too, are hidden at once, and \
             deleted with the next append"
        ))
    }

    fn ask(self, what: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::input(
                format!("{what}; this needs confirmation, and there is no terminal"),
                "confirm with --yes, or leave out --with-limits to keep all messages",
            ));
        }
        output::warning(what);
        Ok(output::confirmed("Set these limits?")?)
    }
}

/// "at most 15 messages, for 1 d".
pub(super) fn limits_in_words(limits: ImportedLimits) -> String {
    let retention = limits.retention.unwrap_or_default();
    let most = retention.max_messages.map(|most| most.get().into());
    let most = most.map(|most| format!("at most {}", output::counted(most, "message")));
    let ttl = retention.ttl_seconds.map(|ttl| format!("for {}", duration(ttl.get())));
    let window = limits.window_seconds;
    let window = window.map(|window| format!("a window of {}", duration(window.get())));
    let all: Vec<_> = [most, ttl, window].into_iter().flatten().collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
