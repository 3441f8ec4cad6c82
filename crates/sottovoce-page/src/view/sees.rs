//! What the model sees: the prompt that words would get, message by message, and those of the last turns.

mod window;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::Form;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::context::Placement;
use sottovoce::conversation::TurnReport;
use sottovoce::prompt::{EntryOutcome, Prompt, Receipt, ReceiptEntry};
use sottovoce::store::merged_ranges;
use sottovoce::{ConversationStore, Scope, StoredMessage};

use crate::deed::LastTurn;
use crate::english as en;
use crate::failure::Failure;
use crate::html::{BESIDE, Place, ROOM, Shell, beginning, counted, cut, fitting, layout, one_line};
use crate::room::Room;
use crate::{later, link};

/// The most bytes of a message that are shown, of the system prompt, and of what was typed.
const SHOWN: usize = 280;
const SYSTEM: usize = 4000;
const TYPED: usize = 4000;
/// How many left out messages are shown with their words.
const LEFT_OUT: usize = 40;
/// The most bytes of the messages of one of the last turns.
const OF_TURN: usize = 2500;

#[derive(Deserialize)]
pub(crate) struct Asked {
    say: String,
}

pub(crate) async fn show(room: Room) -> Result<Markup, Failure> {
    let turns = room.here.app.last_turns.of(&room.scope);
    let main = html! {
        h1 { (en::SEES) }
        p { (en::SEES_INTRO) }
        (form(&room, ""))
        (last_turns(&room, &turns))
    };
    Ok(page(&room, &main))
}

fn page(room: &Room, main: &Markup) -> Markup {
    layout(&room.here.visit, &Shell::of(Place::Sees, en::SEES, &room.scope, room.title()), main)
}

fn form(room: &Room, say: &str) -> Markup {
    html! {
        form.talk method="post" action=(link::of("sees", &room.scope)) {
            (room.here.visit.csrf_field())
            label { (en::SEES_WORDS) textarea name="say" rows="2" dir="auto" required { (if cut(say, TYPED).1 { "" } else { say }) } }
            div.actions { button.primary { (en::SHOW_PROMPT) } }
        }
    }
}

/// Builds the prompt that these words would get. Stores nothing.
pub(crate) async fn explain(room: Room, Form(asked): Form<Asked>) -> Result<Response, Failure> {
    if asked.say.trim().is_empty() {
        return Err(Failure::wrong(en::NO_WORDS, en::TYPE_SOME));
    }
    let first = html! { h1 { (en::SEES) } (form(&room, &asked.say)) };
    let (here, scope) = (room.here.clone(), room.scope.clone());
    let title = room.title().map(str::to_owned);
    let shell = Shell::of(Place::Sees, en::SEES, &scope, title.as_deref());
    let rest = async move { explained(&room, &asked.say).await };
    later::page(&here, &shell, first, rest).await
}

/// The prompt, what was left out of it, and the last turns.
async fn explained(room: &Room, say: &str) -> Result<Markup, Failure> {
    let (prompt, receipt) = room.conversation.prompt(say.trim()).await?;
    let turns = room.here.app.last_turns.of(&room.scope);
    let cached = turns.first().map(|turn| in_cache(turn, &receipt));
    let read = left_out_messages(room, &prompt, &receipt).await?;
    let texts = texts(&prompt, &read);
    let scope = &room.scope;
    // The newest stand next to what was typed, so that the oldest are left out where not all fit.
    let mut items: Vec<_> = included(&receipt).enumerate().collect();
    items.reverse();
    let list = fitting(ROOM / 2, items, |(at, entry)| {
        item(scope, entry, &texts, cached.is_some_and(|cached| at < cached))
    });
    let left = list.left;
    let left_tokens: usize =
        included(&receipt).take(usize::try_from(left).unwrap_or(0)).map(|entry| entry.tokens).sum();
    let system = link::with("words", scope, &[("what", "system")]);
    Ok(html! {
        h2 { (en::THE_PROMPT) }
        (window::bar(&receipt, room.here.app.house.config().language_model.num_ctx))
        @match cached {
            Some(count) => p.muted { (en::cached(count as u64)) },
            None => p.muted { (en::CACHE_UNKNOWN) },
        }
        ol.prompt {
            li.system {
                p.why { span.tokens { (receipt.system_tokens) } " " (en::SYSTEM_PROMPT) @if receipt.tool_tokens > 0 { ", " (en::of_them_functions(receipt.tool_tokens)) } }
                details { summary { (en::SHOW_TEXT) } (beginning(scope, &prompt.system, SYSTEM, Some(&system))) }
            }
            @if left > 0 { li { p.why { span.tokens { (left_tokens) } " " (en::earlier(&counted(left, en::MESSAGES))) " " a href=(link::of("timeline", scope)) { (en::TIMELINE) } } } }
            @for item in list.shown.iter().rev() { (item) }
            li.user {
                p.why { span.tokens { (receipt.user_tokens) } " " (en::YOUR_WORDS) }
                (beginning(scope, say, TYPED, None))
            }
        }
        (left_out_list(scope, &receipt, &texts))
        (last_turns(room, &turns))
    })
}

fn included(receipt: &Receipt) -> impl Iterator<Item = &ReceiptEntry> {
    receipt.entries.iter().filter(|entry| entry.outcome == EntryOutcome::Included)
}

/// How many messages at the beginning of a prompt stood at the beginning of the last one too. A server need not read them again.
fn in_cache(last: &LastTurn, receipt: &Receipt) -> usize {
    let beginning = |receipt: &Receipt| -> Vec<Option<u64>> {
        let entries = included(receipt).filter(|entry| entry.placement != Placement::NewestTurn);
        entries.map(|entry| entry.seq).collect()
    };
    let mut before = beginning(&last.report.receipt);
    before.extend(last.utterance.map(Some));
    let now = beginning(receipt);
    before.iter().zip(&now).take_while(|(before, now)| before == now && before.is_some()).count()
}

/// The messages that were left out of a prompt, as far as they are shown.
async fn left_out_messages(
    room: &Room,
    prompt: &Prompt,
    receipt: &Receipt,
) -> sottovoce::Result<Vec<Arc<StoredMessage>>> {
    let is_there =
        |seq: &u64| prompt.context.iter().any(|(_, message)| message.seq() == Some(*seq));
    let missing = left_out(receipt).take(LEFT_OUT).filter_map(|entry| entry.seq);
    let missing: Vec<_> = missing.filter(|seq| !is_there(seq)).map(|seq| seq..=seq).collect();
    let mut messages = Vec::new();
    for numbers in merged_ranges(missing) {
        messages.extend(room.store.read_seqs(numbers).await?.messages);
    }
    Ok(messages)
}

/// The words of the messages in a receipt, by number. Those in the prompt read as they do there.
fn texts<'a>(prompt: &'a Prompt, read: &'a [Arc<StoredMessage>]) -> HashMap<u64, &'a str> {
    let read = read.iter().map(|stored| (stored.seq, stored.message.content.as_str()));
    let shown = prompt.context.iter().filter_map(|(_, message)| {
        message.seq().map(|seq| (seq, message.message().content.as_str()))
    });
    read.chain(shown).collect()
}

/// A message that was offered for a prompt: its tokens, why, and what became of it.
fn item(
    scope: &Scope,
    entry: &ReceiptEntry,
    texts: &HashMap<u64, &str>,
    is_cached: bool,
) -> Markup {
    let whole = |seq: u64| link::with("message", scope, &[("n", &seq.to_string())]);
    html! {
        li class=(entry.role.as_str()) {
            p.why {
                span.tokens { (entry.tokens) } " "
                @if let Some(seq) = entry.seq { a href=(link::message(scope, seq)) { (en::role(entry.role)) " " (seq) } } @else { (en::role(entry.role)) }
                " · "
                @if entry.outcome != EntryOutcome::Included { strong { (entry.outcome.in_words()) } ": " }
                (one_line(entry.reason()))
                @if is_cached { " " span.good { (en::CACHED) } }
            }
            @if let Some((seq, text)) = entry.seq.and_then(|seq| Some((seq, texts.get(&seq)?))) {
                (beginning(scope, text, SHOWN, Some(&whole(seq))))
            }
        }
    }
}

fn left_out(receipt: &Receipt) -> impl Iterator<Item = &ReceiptEntry> {
    receipt.entries.iter().filter(|entry| entry.outcome != EntryOutcome::Included)
}

fn left_out_list(scope: &Scope, receipt: &Receipt, texts: &HashMap<u64, &str>) -> Markup {
    let list = fitting(2 * BESIDE, left_out(receipt), |entry| item(scope, entry, texts, false));
    let failures = receipt.failed.iter().cloned();
    let failures = failures.chain(receipt.skipped.iter().map(ToString::to_string));
    let failures = fitting(BESIDE, failures, |failure| html! { p.failure { (failure) } });
    html! {
        h2 { (en::LEFT_OUT) }
        @if list.shown.is_empty() { p { (en::NOTHING_LEFT_OUT) } }
        ol.prompt.out { @for item in &list.shown { (item) } }
        @if list.left > 0 { p.muted { (en::and_more(list.left)) } }
        @for failure in &failures.shown { (failure) }
        @if failures.left > 0 { p.failure { (en::and_more(failures.left)) } }
    }
}

fn last_turns(room: &Room, turns: &[LastTurn]) -> Markup {
    let texts = HashMap::new();
    let list = fitting(ROOM / 2, turns, |turn| {
        let receipt = &turn.report.receipt;
        let list = fitting(OF_TURN, receipt.entries.iter().rev(), |entry| {
            item(&room.scope, entry, &texts, false)
        });
        html! {
            details.turn {
                summary {
                    (turn.at.strftime("%H:%M:%S"))
                    @if let Some(seq) = turn.utterance { ", " (en::MESSAGE) " " (seq) } @else { ", " (en::OFF_RECORD) }
                    ", " (counted(receipt.included() as u64, en::MESSAGES_IN_PROMPT))
                }
                (window::bar(receipt, turn.report.window))
                (figures(&turn.report))
                @if list.left > 0 { p.muted { (en::earlier(&counted(list.left, en::MESSAGES))) } }
                ol.prompt { @for item in list.shown.iter().rev() { (item) } }
            }
        }
    });
    html! {
        h2 { (en::LAST_TURNS) }
        @if turns.is_empty() { p.muted { (en::NO_TURNS) } }
        @for turn in &list.shown { (turn) }
        @if list.left > 0 { p.muted { (en::and_more(list.left)) } }
    }
}

fn figures(report: &TurnReport) -> Markup {
    let usage = &report.usage;
    let seconds = |time: std::time::Duration| format!("{:.2} s", time.as_secs_f64());
    html! {
        dl.facts {
            @if let Some(tokens) = usage.prompt_tokens { div { dt { (en::PROMPT_TOKENS) } dd { (counted(tokens, ("", ""))) } } }
            @if let Some(tokens) = usage.cached_tokens { div { dt { (en::FROM_CACHE) } dd { (counted(tokens, ("", ""))) } } }
            @if let Some(share) = report.unchanged_share() { div { dt { (en::UNCHANGED) } dd { (format!("{:.0} %", share * 100.0)) } } }
            @if let Some(tokens) = usage.answer_tokens { div { dt { (en::ANSWER_TOKENS) } dd { (counted(tokens, ("", ""))) } } }
            @if let Some(time) = report.time_to_first_token { div { dt { (en::FIRST_WORD) } dd { (seconds(time)) } } }
            @if let Some(time) = report.whole_time { div { dt { (en::WHOLE_TIME) } dd { (seconds(time)) } } }
            @if report.truncated { div { dt { (en::WINDOW) } dd.bad { (en::SERVER_CUT) } } }
        }
    }
}
