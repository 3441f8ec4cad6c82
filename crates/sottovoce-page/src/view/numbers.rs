//! Numbers: messages a day, by hour and by person; tokens, the cache, the time to the first word, and what recall brought.

use axum::response::Response;
use jiff::ToSpan;
use jiff::civil::Date;
use maud::{Markup, html};

use crate::deed::{Day, Tally};
use crate::english as en;
use crate::failure::Failure;
use crate::html::{Bar, Place, ROOM, Shell, bars, counted, fitting, layout, line, name, one_line};
use crate::room::{Here, Room, look_at};
use crate::{later, link};

/// How many days a chart shows.
const DAYS: i64 = 30;
/// How many people.
const PEOPLE: usize = 12;

/// All conversations: their numbers, and where each one's charts are.
pub(crate) async fn all(here: Here) -> Result<Response, Failure> {
    here.store()?;
    let counting = here.clone();
    let rest = async move { count(&counting).await };
    let shell = Shell::at(Place::Numbers, en::NUMBERS);
    later::page(&here, &shell, html! { h1 { (en::NUMBERS) } }, rest).await
}

async fn count(here: &Here) -> Result<Markup, Failure> {
    let open = here.store()?;
    let mut rows = Vec::new();
    for scope in here.scopes()? {
        let looked = async {
            let store = look_at(&open, &scope).await?;
            let state = sottovoce::store::StoreBackend::state(&store).await?;
            let title = sottovoce::ConversationStore::profile(&store).await?.title.clone();
            let gone: u64 = state.forgotten().map(|range| range.end() - range.start() + 1).sum();
            Ok::<_, sottovoce::Error>((title, state.last_seq.saturating_sub(gone)))
        };
        // A conversation that cannot be read is listed on the page of all conversations with its error.
        if let Ok((title, messages)) = looked.await
            && messages > 0
        {
            rows.push((scope, title, messages));
        }
    }
    rows.sort_by_key(|(_, _, messages)| std::cmp::Reverse(*messages));
    let total: u64 = rows.iter().map(|(_, _, messages)| messages).sum();
    let charted: Vec<Bar> = rows
        .iter()
        .take(PEOPLE)
        .map(|(scope, title, messages)| Bar::new(name(scope, title.as_deref()), *messages, 0))
        .collect();
    let list = fitting(ROOM, &rows, |(scope, title, messages)| {
        html! { li { a href=(link::of("numbers", scope)) { bdi { (name(scope, title.as_deref())) } } " " span.muted { (counted(*messages, en::MESSAGES)) } } }
    });
    Ok(html! {
        p { strong { (counted(total, en::MESSAGES)) } " " (en::IN) " " (counted(rows.len() as u64, en::CONVERSATIONS_COUNTED)) "." }
        @if !charted.is_empty() { (bars("largest", en::LARGEST, [en::MESSAGES.1, ""], &charted)) }
        ul.plain { @for conversation in &list.shown { (conversation) } }
        @if list.left > 0 { p.muted { (en::and_more(list.left)) } }
    })
}

/// The charts of one conversation.
pub(crate) async fn show(room: Room) -> Result<Markup, Failure> {
    let zone = room.zone();
    let tally = room.here.app.tallies.of(&room.store, &zone).await?;
    let main = html! {
        h1 { (en::NUMBERS) }
        @if !tally.is_complete() {
            p.notice role="status" data-refresh="" { (en::counting(&counted(tally.counted, ("", "")), &counted(tally.last, en::NUMBERS_COUNTED))) }
        }
        @if tally.days.is_empty() { p { (en::NOTHING_COUNTED) } } @else { (charts(&tally)) }
    };
    let mut shell = Shell::of(Place::OwnNumbers, en::NUMBERS, &room.scope, room.title());
    shell.refresh = !tally.is_complete();
    Ok(layout(&room.here.visit, &shell, &main))
}

fn charts(tally: &Tally) -> Markup {
    let days = last_days(tally);
    let by = |parts: fn(&Day) -> (u64, u64)| -> Vec<Bar> {
        days.iter()
            .map(|(date, day)| {
                let (first, second) = parts(day);
                Bar::new(date.strftime("%-d %b").to_string(), first, second)
            })
            .collect()
    };
    let hours: Vec<Bar> = tally
        .hours
        .iter()
        .enumerate()
        .map(|(hour, messages)| Bar::new(format!("{hour:02}:00"), *messages, 0))
        .collect();
    let mut people: Vec<(&String, &u64)> = tally.people.iter().collect();
    people.sort_by_key(|(_, messages)| std::cmp::Reverse(**messages));
    let people: Vec<Bar> = people
        .into_iter()
        .take(PEOPLE)
        .map(|(who, messages)| {
            let who = if who.is_empty() { en::NO_NAME.to_owned() } else { one_line(who) };
            Bar::new(who, *messages, 0)
        })
        .collect();
    let has = |figure: fn(&Day) -> u64| days.iter().any(|(_, day)| figure(day) > 0);
    html! {
        (bars("days", en::A_DAY_TITLE, [en::PEOPLE, en::ASSISTANT], &by(|day| (day.user, day.assistant + day.other))))
        (bars("hours", en::BY_HOUR, [en::MESSAGES.1, ""], &hours))
        @if !people.is_empty() { (bars("people", en::BY_PERSON, [en::MESSAGES.1, ""], &people)) }
        @if has(|day| day.prompt_tokens) {
            (bars("tokens", en::TOKENS_TITLE, [en::READ_ANEW, en::FROM_CACHE], &by(|day| (day.prompt_tokens.saturating_sub(day.cached_tokens), day.cached_tokens))))
        }
        @if has(|day| day.timed) {
            (line("first-word", en::FIRST_WORD_TITLE, en::MILLISECONDS, &by(|day| (day.first_word_ms.checked_div(day.timed).unwrap_or(0), 0))))
        }
        @if has(|day| day.recalled) { (bars("recalled", en::RECALLED_TITLE, [en::MESSAGES.1, ""], &by(|day| (day.recalled, 0)))) }
        p.muted { (en::FIGURES_SINCE) }
    }
}

/// The last days with messages on any of them, up to the newest one's.
fn last_days(tally: &Tally) -> Vec<(Date, Day)> {
    let Some((&last, _)) = tally.days.last_key_value() else { return Vec::new() };
    (0..DAYS)
        .rev()
        .filter_map(|back| last.checked_sub(back.days()).ok())
        .map(|date| (date, tally.days.get(&date).copied().unwrap_or_default()))
        .collect()
}
