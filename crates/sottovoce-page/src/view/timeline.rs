//! A conversation by day: who spoke, what became of it, and a box to go on.

mod slice;

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::Query;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::StoredMessage;
use sottovoce::store::StoreBackend;

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    Marks, Place, ROOM, Shell, article, beginning, counted, date, layout, local, moment,
};
use crate::link;
use crate::room::Room;
pub(crate) use slice::after;
use slice::{Slice, around, before, newest, since};

/// How many messages a page has, and the fewest, where they are long.
const PAGE: usize = 40;
const FEWEST: usize = 5;
/// The most bytes of a summary.
const SUMMARY: usize = 1500;

#[derive(Deserialize, Default)]
pub(crate) struct Asked {
    before: Option<u64>,
    after: Option<u64>,
    at: Option<u64>,
    #[serde(default)]
    day: String,
}

pub(crate) async fn show(room: Room, Query(asked): Query<Asked>) -> Result<Markup, Failure> {
    let state = room.store.state().await?;
    let gone: Vec<_> = state.forgotten().collect();
    let (slice, shown) =
        fitting_page(&room, &gone, asked.at, |most| slice_of(&room, &asked, most)).await?;
    let gone_count: u64 = gone.iter().map(|range| range.end() - range.start() + 1).sum();
    let zone = room.zone();
    let day_of = |stored: &Arc<StoredMessage>| local(stored.message.said_at(), &zone).date();
    let is_elsewhere = asked
        .day
        .parse()
        .is_ok_and(|day| !slice.messages.iter().any(|stored| day_of(stored) == day));
    let is_newest = !slice.has_after;
    // Something may have been said since the state was read.
    let last = state.last_seq.max(slice.last);
    let scope = &room.scope;
    let page = |name, number: u64| link::with("timeline", scope, &[(name, &number.to_string())]);
    let live = link::of("live/timeline", scope);
    let main = html! {
        h1.hidden { (en::TIMELINE) }
        form.filters method="get" action=(link::of("timeline", scope)) {
            label { (en::GO_TO_DAY) input type="date" name="day" value=(asked.day); }
            button { (en::GO) }
            a.button href=(link::query_of("/search", &[("of", &scope.to_string())])) { (en::SEARCH_HERE) }
        }
        @if !slice.skipped.is_empty() {
            div.failure role="alert" {
                p { (counted(slice.skipped.len() as u64, en::FINDINGS)) ": " (en::SKIPPED) }
                p.what { (slice.skipped.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ")) }
                p { a href="/health" { (en::TO_HEALTH) } }
            }
        }
        @if is_elsewhere { p.notice role="status" { (en::NOTHING_THAT_DAY) } }
        @if slice.has_before && !slice.messages.is_empty() {
            p.pages #older { a rel="prev" href={ (page("before", slice.first)) "#end" } { (en::OLDER) } }
        }
        div.timeline #timeline data-live=[is_newest.then_some(&live)] data-last=(last) data-gone=(gone_count) {
            @if slice.messages.is_empty() { p.muted #empty { (en::NOTHING_HERE) } }
            (shown)
        }
        @if slice.has_after && !slice.messages.is_empty() {
            p.pages #end { a rel="next" href=(page("after", slice.last)) { (en::NEWER) } " · " a href=(link::of("timeline", scope)) { (en::NEWEST) } }
        }
        @if !room.here.visit.read_only {
            form #pick method="post" action=(link::of("forget", scope)) {
                (room.here.visit.csrf_field())
                button name="what" value="picked" { (en::FORGET_PICKED) }
            }
            @if is_newest { (talk_box(&room)) }
        }
        aside #panel aria-label=(en::DETAILS) hidden {}
    };
    Ok(layout(
        &room.here.visit,
        &Shell::of(Place::Timeline, en::TIMELINE, scope, room.title()),
        &main,
    ))
}

/// A page of messages as markup. It has fewer of them where they are so long that it would become too large.
pub(crate) async fn fitting_page<F: Future<Output = Result<Slice, Failure>> + Send>(
    room: &Room,
    gone: &[RangeInclusive<u64>],
    target: Option<u64>,
    read: impl Fn(usize) -> F,
) -> Result<(Slice, Markup), Failure> {
    let mut most = PAGE;
    loop {
        let slice = read(most).await?;
        let shown = rows(room, &slice.messages, gone, target);
        if shown.0.len() <= ROOM || most <= FEWEST {
            return Ok((slice, shown));
        }
        most /= 2;
    }
}

async fn slice_of(room: &Room, asked: &Asked, most: usize) -> Result<Slice, Failure> {
    let store = &room.store;
    if !asked.day.is_empty() {
        let wrong = || Failure::wrong(en::NOT_A_DAY, en::WRITE_A_DAY);
        let day: Date = asked.day.parse().map_err(|_| wrong())?;
        let start = day.to_zoned(room.zone()).map_err(|_| wrong())?;
        return Ok(match since(store, start.timestamp()).await? {
            Some(first) => after(store, first - 1, most).await?,
            None => newest(store, most).await?,
        });
    }
    Ok(match (asked.at, asked.before, asked.after) {
        (Some(number), ..) => around(store, number, most).await?,
        (_, Some(number), _) => before(store, number, most).await?,
        (.., Some(number)) => after(store, number, most).await?,
        _ => newest(store, most).await?,
    })
}

/// Messages with the days, and with what stands between them: clears, summaries, and what was forgotten.
fn rows(
    room: &Room,
    messages: &[Arc<StoredMessage>],
    gone: &[RangeInclusive<u64>],
    target: Option<u64>,
) -> Markup {
    let zone = room.zone();
    let selectable = !room.here.visit.read_only;
    let mut before: Option<&StoredMessage> = None;
    html! {
        @for stored in messages {
            @let day = local(stored.message.said_at(), &zone).date();
            @if before.is_none_or(|before| local(before.message.said_at(), &zone).date() != day) {
                h2.day { (date(day)) }
            }
            @if let Some(before) = before { (between(room, before, stored, gone)) }
            (article(stored, &zone, &Marks { profile: Some(&room.profile), selectable, is_target: target == Some(stored.seq), ..Marks::default() }))
            ({ before = Some(stored); "" })
        }
        @if let (Some(last), Some(cleared)) = (before, room.profile.cleared) {
            @if cleared.seq >= last.seq && messages.len() > 1 { p.between { (en::CLEARED) " " (moment(cleared.at, &zone)) } }
        }
    }
}

fn between(
    room: &Room,
    before: &StoredMessage,
    stored: &StoredMessage,
    gone: &[RangeInclusive<u64>],
) -> Markup {
    let hole = before.seq.saturating_add(1)..stored.seq;
    let forgotten: u64 = gone
        .iter()
        .map(|range| {
            (*range.end() + 1).min(hole.end).saturating_sub((*range.start()).max(hole.start))
        })
        .sum();
    let cleared = room
        .profile
        .cleared
        .filter(|cleared| before.seq <= cleared.seq && cleared.seq < stored.seq);
    let thread = stored.message.thread_id.as_deref();
    let summary = room
        .profile
        .summary(thread)
        .filter(|summary| summary.covers(before.seq) && !summary.covers(stored.seq));
    let of_summary = [("what", "summary"), ("thread", thread.unwrap_or_default())];
    let whole = link::with("words", &room.scope, &of_summary);
    html! {
        @if forgotten > 0 { p.between { (counted(forgotten, en::FORGOTTEN_MESSAGES)) } }
        @if let Some(summary) = summary {
            details.between { summary { (counted(summary.messages(), en::SUMMARIZED)) } (beginning(&room.scope, &summary.text, SUMMARY, Some(&whole))) }
        }
        @if let Some(cleared) = cleared { p.between { (en::CLEARED) " " (moment(cleared.at, &room.zone())) } }
    }
}

fn talk_box(room: &Room) -> Markup {
    html! {
        form.talk #talk method="post" action=(link::of("talk", &room.scope)) data-stop=(link::of("stop", &room.scope)) {
            (room.here.visit.csrf_field())
            label { span.hidden { (en::SAY_LABEL) } textarea name="say" rows="2" dir="auto" placeholder=(en::SAY_LABEL) {} }
            div.actions {
                button.primary name="do" value="say" { (en::SAY) }
                button name="do" value="retry" formnovalidate { (en::RETRY) }
                button #stop type="button" hidden { (en::STOP) }
                label.check { input type="checkbox" name="off" value="1"; (en::OFF_RECORD) }
            }
            p #status.muted role="status" {}
        }
    }
}
