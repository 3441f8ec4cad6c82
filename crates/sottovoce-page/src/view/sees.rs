//! What the model sees: the prompt that words would get, message by message, and those of the last turns.

mod window;

use std::collections::HashMap;

use axum::extract::Form;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::context::Placement;
use sottovoce::conversation::TurnReport;
use sottovoce::prompt::{EntryOutcome, Prompt, Receipt, ReceiptEntry};
use sottovoce::{ConversationStore, Scope};

use crate::deed::LastTurn;
use crate::english as en;
use crate::failure::Failure;
use crate::html::{Place, Shell, counted, cut, layout, one_line, words};
use crate::later;
use crate::link;
use crate::room::Room;

/// The most bytes of a message that are shown.
const SHOWN: usize = 280;
/// How many left out messages are shown with their words.
const LEFT_OUT: usize = 40;

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
            label { (en::SEES_WORDS) textarea name="say" rows="2" dir="auto" required { (say) } }
            div.actions { button.primary { (en::SHOW_PROMPT) } }
        }
    }
}

/// Builds the prompt that these words would get. Stores nothing.
pub(crate) async fn explain(room: Room, Form(asked): Form<Asked>) -> Result<Response, Failure> {
    if asked.say.trim().is_empty() {
        return Err(room.here.wrong(en::NO_WORDS, en::TYPE_SOME));
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
    let built = room.conversation.prompt(say.trim()).await;
    let (prompt, receipt) = built.map_err(|error| room.failed(error))?;
    let turns = room.here.app.last_turns.of(&room.scope);
    let cached = turns.first().map(|turn| in_cache(turn, &receipt));
    let texts = texts(room, &prompt, &receipt).await.map_err(|error| room.failed(error))?;
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
                details { summary { (en::SHOW_TEXT) } div.words dir="auto" { (prompt.system) } }
            }
            @for (at, entry) in included(&receipt).enumerate() {
                (item(&room.scope, entry, &texts, cached.is_some_and(|cached| at < cached)))
            }
            li.user {
                p.why { span.tokens { (receipt.user_tokens) } " " (en::YOUR_WORDS) }
                div.words dir="auto" { (cut(say, SHOWN * 4).0) }
            }
        }
        (left_out(&room.scope, &receipt, &texts))
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

/// The words of the messages in a receipt, by number.
async fn texts(
    room: &Room,
    prompt: &Prompt,
    receipt: &Receipt,
) -> sottovoce::Result<HashMap<u64, String>> {
    let mut texts = HashMap::new();
    for (_, message) in &prompt.context {
        if let Some(seq) = message.seq() {
            texts.insert(seq, cut(&message.message().content, SHOWN).0.to_owned());
        }
    }
    let missing = receipt.entries.iter().filter_map(|entry| entry.seq);
    let missing: Vec<u64> = missing.filter(|seq| !texts.contains_key(seq)).take(LEFT_OUT).collect();
    for seq in missing {
        for stored in room.store.read_seqs(seq..=seq).await?.messages {
            texts.insert(seq, cut(&stored.message.content, SHOWN).0.to_owned());
        }
    }
    Ok(texts)
}

fn item(
    scope: &Scope,
    entry: &ReceiptEntry,
    texts: &HashMap<u64, String>,
    is_cached: bool,
) -> Markup {
    html! {
        li class=(entry.role.as_str()) {
            p.why {
                span.tokens { (entry.tokens) } " "
                @if let Some(seq) = entry.seq { a href=(link::message(scope, seq)) { (en::role(entry.role)) " " (seq) } } @else { (en::role(entry.role)) }
                " · " (one_line(&entry.why))
                @if is_cached { " " span.good { (en::CACHED) } }
            }
            @if let Some(text) = entry.seq.and_then(|seq| texts.get(&seq)) { div.words dir="auto" { (words(scope, text)) } }
        }
    }
}

fn left_out(scope: &Scope, receipt: &Receipt, texts: &HashMap<u64, String>) -> Markup {
    let out: Vec<&ReceiptEntry> =
        receipt.entries.iter().filter(|entry| entry.outcome != EntryOutcome::Included).collect();
    html! {
        h2 { (en::LEFT_OUT) }
        @if out.is_empty() { p { (en::NOTHING_LEFT_OUT) } }
        ol.prompt.out {
            @for entry in out.iter().take(LEFT_OUT) {
                li class=(entry.role.as_str()) {
                    p.why {
                        span.tokens { (entry.tokens) } " "
                        @if let Some(seq) = entry.seq { a href=(link::message(scope, seq)) { (en::role(entry.role)) " " (seq) } } @else { (en::role(entry.role)) }
                        " · " strong { (en::outcome(entry.outcome)) } ": " (one_line(&entry.why))
                    }
                    @if let Some(text) = entry.seq.and_then(|seq| texts.get(&seq)) { div.words dir="auto" { (words(scope, text)) } }
                }
            }
        }
        @if out.len() > LEFT_OUT { p.muted { (en::and_more((out.len() - LEFT_OUT) as u64)) } }
        @for failed in &receipt.failed { p.failure { (failed) } }
        @for skipped in &receipt.skipped { p.failure { (skipped) } }
    }
}

fn last_turns(room: &Room, turns: &[LastTurn]) -> Markup {
    html! {
        h2 { (en::LAST_TURNS) }
        @if turns.is_empty() { p.muted { (en::NO_TURNS) } }
        @for turn in turns {
            details.turn {
                summary {
                    (turn.at.strftime("%H:%M:%S"))
                    @if let Some(seq) = turn.utterance { ", " (en::MESSAGE) " " (seq) } @else { ", " (en::OFF_RECORD) }
                    ", " (counted(turn.report.receipt.included() as u64, en::MESSAGES_IN_PROMPT))
                }
                (window::bar(&turn.report.receipt, turn.report.window))
                (figures(&turn.report))
                ol.prompt {
                    @for entry in &turn.report.receipt.entries {
                        li class=(entry.role.as_str()) {
                            p.why {
                                span.tokens { (entry.tokens) } " "
                                @if let Some(seq) = entry.seq { a href=(link::message(&room.scope, seq)) { (en::role(entry.role)) " " (seq) } } @else { (en::role(entry.role)) }
                                @if entry.outcome != EntryOutcome::Included { " · " strong { (en::outcome(entry.outcome)) } }
                                " · " (one_line(&entry.why))
                            }
                        }
                    }
                }
            }
        }
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
