//! Forgetting: what is selected, exactly what goes and what does not, and by a second step that it is gone.

mod selection;

use axum::extract::Form;
use axum::response::Response;
use bytes::Bytes;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::store::{ForgetPlan, ForgetReport, merged_ranges};
use sottovoce::{ConversationStore, Error};

use crate::deed::Plan;
use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Marks, Place, ROOM, Shell, article, counted, date, fitting, layout, local, moment,
    name, one_line,
};
use crate::room::Room;
use crate::{later, link};
use selection::{Selected, Selection, speakers};

/// How many messages the announcement shows. The rest is counted.
const SHOWN: usize = 30;

/// Asks what to forget.
pub(crate) async fn choose(room: Room) -> Result<Markup, Failure> {
    let speakers = speakers(&room).await?;
    let speakers = fitting(2 * BESIDE, &speakers, |speaker| {
        html! { option value=(speaker) { (one_line(speaker)) } }
    });
    let form = |what: &str, choice: &Markup| {
        html! {
            form method="post" action=(link::of("forget", &room.scope)) {
                (room.here.visit.csrf_field())
                (choice)
                button name="what" value=(what) { (en::SHOW_WHAT_GOES) }
            }
        }
    };
    let main = html! {
        h1 { (en::FORGET_TITLE) }
        p { (en::FORGET_INTRO) }
        @if room.here.visit.read_only { p.failure { (en::READ_ONLY) } } @else {
            div.choices {
                (form("numbers", &html! { label { (en::NUMBERS_OF_MESSAGES) input name="numbers" placeholder="7, 9-12" required; } }))
                (form("day", &html! { label { (en::A_DAY) input type="date" name="day" required; } }))
                @if !speakers.shown.is_empty() {
                    (form("person", &html! {
                        label { (en::A_PERSON) select name="speaker" {
                            @for speaker in &speakers.shown { (speaker) }
                            @if speakers.left > 0 { option disabled { (en::and_more(speakers.left)) } }
                        } }
                    }))
                }
                (form("found", &html! { label { (en::WHAT_IS_FOUND) input type="search" name="q" dir="auto" required; } }))
                (form("whole", &html! { p { (en::WHOLE_CONVERSATION) } }))
            }
        }
        (export_forms(&room))
    };
    Ok(page(&room, &main))
}

fn page(room: &Room, main: &Markup) -> Markup {
    layout(&room.here.visit, &Shell::of(Place::Forget, en::FORGET, &room.scope, room.title()), main)
}

/// Offers the conversation as a file.
fn export_forms(room: &Room) -> Markup {
    html! {
        section.aside {
            h2 { (en::EXPORT_FIRST) }
            p { (en::EXPORT_HELP) }
            form.row method="post" action=(link::of("export", &room.scope)) {
                (room.here.visit.csrf_field())
                button name="form" value="json" { (en::EXPORT_JSON) }
                button name="form" value="markdown" { (en::EXPORT_MARKDOWN) }
            }
        }
    }
}

/// Shows exactly what would go. Changes nothing.
pub(crate) async fn plan(room: Room, body: Bytes) -> Result<Response, Failure> {
    let (here, scope) = (room.here.clone(), room.scope.clone());
    let title = room.title().map(str::to_owned);
    let shell = Shell::of(Place::Forget, en::FORGET, &scope, title.as_deref());
    let rest = async move {
        let selected = Selection::read(&body).find(&room).await?;
        let planned = match &selected {
            Selected::Numbers(numbers) => room.store.plan_forget_exchanges(numbers).await?,
            Selected::Whole => room.store.plan_forget_all().await?,
        };
        announce(&room, planned, None).await
    };
    later::page(&here, &shell, html! { h1 { (en::WHAT_WILL_GO) } }, rest).await
}

async fn announce(
    room: &Room,
    plan: ForgetPlan,
    notice: Option<&'static str>,
) -> Result<Markup, Failure> {
    if plan.is_nothing() && !plan.is_whole() {
        return Err(Failure::wrong(en::ALREADY_GONE, en::SELECT_SOMETHING));
    }
    Ok(html! {
        @if let Some(notice) = notice { p.failure role="alert" { (notice) } }
        (list(&plan))
        h2 { (en::WHAT_STAYS) }
        ul { @for same in &same_words(room, &plan).await? { (same) } li { (en::STAYS_BACKUPS) } li { (en::STAYS_ELSEWHERE) } @if plan.is_whole() && plan.keeps_context { li { (en::STAYS_CONTEXT) } } }
        (shown(room, &plan).await?)
        (export_forms(room))
        form.confirm method="post" action=(link::of("forgotten", &room.scope)) {
            (room.here.visit.csrf_field())
            @if !plan.answers.is_empty() { div { label.check { input type="checkbox" name="answers" value="yes" checked; (en::ANSWERS_TOO) " (" (counted(plan.answers.len() as u64, en::MESSAGES)) ")" } } }
            input type="hidden" name="plan" value=(room.here.app.announced.keep(&room.scope, Plan::Forget(plan)));
            label.check { input type="checkbox" name="sure" value="yes" required; (en::I_AM_SURE) }
            div.actions {
                button.danger { (en::FORGET_FOR_EVER) }
                a.button href=(link::of("timeline", &room.scope)) { (en::KEEP_ALL) }
            }
        }
    })
}

/// Where the same words stand besides what goes, by conversation.
async fn same_words(room: &Room, plan: &ForgetPlan) -> Result<Vec<Markup>, Failure> {
    let words = room.conversation.index().telling_words(plan).await?;
    let Some(first) = words.words().next() else { return Ok(Vec::new()) };
    let mut places = Vec::new();
    for scope in room.here.scopes()? {
        let nothing = ForgetPlan::default();
        // Search and Health say what is wrong with one that does not open.
        let Ok(other) = Room::open(room.here.clone(), scope.clone()).await else { continue };
        let is_own = scope == room.scope;
        let index = other.conversation.index();
        let looked = index.same_words(&words, if is_own { plan } else { &nothing }).await;
        index.save_in_background();
        let Ok(same) = looked else { continue };
        let backups = match same.messages {
            1.. if !is_own => other.store.daily_backups().await?.len() as u64,
            _ => 0,
        };
        let kinds = [
            (same.messages, en::MESSAGES),
            (same.summaries as u64, en::SUMMARIES),
            (same.snapshots as u64, en::SNAPSHOTS),
            (same.artifacts as u64, en::ARTIFACTS_COUNTED),
            (backups, en::BACKUPS_COUNTED),
        ];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(count, what)| counted(*count, *what)).collect();
        if !kinds.is_empty() {
            places.push(html! {
                li { (kinds.join(", ")) " " (en::WITH_THE_SAME_WORDS) " "
                    a href=(link::query_of("/search", &[("q", first), ("of", &scope.to_string())])) { bdi { (name(&scope, None)) } } }
            });
        }
    }
    Ok(fitting(BESIDE, &places, Clone::clone).shown)
}

/// What goes, by kind.
fn list(plan: &ForgetPlan) -> Markup {
    let rows = [
        (plan.messages.len() as u64, en::MESSAGES, en::GOES_ASKED),
        (plan.answers.len() as u64, en::MESSAGES, en::GOES_ANSWERS),
        (plan.originals.len() as u64, en::MESSAGES, en::GOES_ORIGINALS),
        (plan.copies.len() as u64, en::MESSAGES, en::GOES_COPIES),
        (plan.hidden.len() as u64, en::MESSAGES, en::GOES_HIDDEN),
        (plan.lost, en::NUMBERS_COUNTED, en::GOES_LOST),
        (plan.changed_snapshots.len() as u64, en::SNAPSHOTS, en::GOES_CHANGED),
        (plan.deleted_snapshots.len() as u64, en::SNAPSHOTS, en::GOES_EMPTIED),
        (plan.closed_snapshots.len() as u64, en::SNAPSHOTS, en::GOES_CLOSED),
        (plan.summaries as u64, en::SUMMARIES, en::GOES_SUMMARIES),
        (plan.artifacts.len() as u64, en::ARTIFACTS_COUNTED, en::GOES_ARTIFACTS),
        (plan.backups.len() as u64, en::BACKUPS_COUNTED, en::GOES_BACKUPS),
    ];
    html! {
        ul.plan {
            @for (count, what, why) in rows { @if count > 0 { li { strong { (counted(count, what)) } " " (why) } } }
            @if plan.proposed_title { li { (en::GOES_TITLE) } }
            @if plan.description { li { (en::GOES_DESCRIPTION) } }
            @if plan.is_nothing() && plan.is_whole() { li { (en::GOES_FOLDER) } }
        }
    }
}

/// The messages that go, as far as they fit on the page.
async fn shown(room: &Room, plan: &ForgetPlan) -> Result<Markup, Failure> {
    let ForgetPlan { messages, answers, originals, copies, .. } = plan;
    let all = || [messages, answers, originals, copies].into_iter().flatten();
    let first: Vec<_> = all().take(SHOWN).map(|number| *number..=*number).collect();
    let mut messages = Vec::new();
    for numbers in merged_ranges(first) {
        messages.extend(room.store.read_seqs(numbers).await?.messages);
    }
    let total = all().count() as u64;
    let zone = room.zone();
    let mut before = None;
    let messages = fitting(ROOM, &messages, |stored| {
        let day = Some(local(stored.message.said_at(), &zone).date());
        let is_new = std::mem::replace(&mut before, day) != day;
        html! {
            @if let Some(day) = day.filter(|_| is_new) { h3.day { (date(day)) } }
            (article(stored, &zone, &Marks::default()))
        }
    })
    .shown;
    Ok(html! {
        @if !messages.is_empty() {
            details.goes open[messages.len() <= 5] {
                summary { @if (messages.len() as u64) < total { (en::some_of(messages.len() as u64, &counted(total, en::MESSAGES))) } @else { (en::THESE_MESSAGES) } }
                @for message in &messages { (message) }
            }
        }
    })
}

#[derive(Deserialize)]
pub(crate) struct Agreed {
    plan: u64,
    #[serde(default)]
    sure: String,
    #[serde(default)]
    answers: String,
}

/// Does what was announced, and nothing else.
pub(crate) async fn carry_out(room: Room, Form(agreed): Form<Agreed>) -> Result<Markup, Failure> {
    let Some(Plan::Forget(plan)) = room.here.app.announced.take(&room.scope, agreed.plan) else {
        return Err(Failure::wrong(en::PLAN_USED, en::PLAN_AGAIN));
    };
    if agreed.sure != "yes" {
        return Err(Failure::wrong(en::NOT_SURE, en::PLAN_AGAIN));
    }
    let plan = if agreed.answers == "yes" { plan } else { plan.without_answers() };
    match room.conversation.forget_planned(&plan).await {
        // Somebody else has changed the conversation since. The owner sees what would go now.
        Err(Error::MoreThanAnnounced) => {
            let numbers =
                || plan.messages.iter().map(|number| *number..=*number).collect::<Vec<_>>();
            let again = match plan.is_whole() {
                true => room.store.plan_forget_all().await?,
                false => room.store.plan_forget_exchanges(&numbers()).await?,
            };
            let anew = announce(&room, again, Some(en::CHANGED_MEANWHILE)).await?;
            Ok(page(&room, &html! { h1 { (en::WHAT_WILL_GO) } (anew) }))
        }
        Err(error) => Err(error.into()),
        Ok(report) if report.plan.is_nothing() && !report.plan.is_whole() => Ok(page(
            &room,
            &html! { h1 { (en::GONE_TITLE) } p role="status" { (en::GONE_ALREADY) } },
        )),
        Ok(report) => {
            let is_folder_gone = report.plan.is_whole()
                && !report.plan.keeps_context
                && room.store.clone().remove_forgotten().await?;
            Ok(page(&room, &record(&room, &report, is_folder_gone)))
        }
    }
}

/// The record of what is gone.
fn record(room: &Room, report: &ForgetReport, is_folder_gone: bool) -> Markup {
    let now = room.here.app.house.clock().now().timestamp();
    let numbers = fitting(BESIDE, report.plan.numbers(), |range| {
        html! { (range.start()) @if range.start() != range.end() { "–" (range.end()) } }
    });
    let left = fitting(BESIDE, &report.left, |finding| {
        html! { p.failure { (finding) ". " ((room.here.app.advice.finding)(finding)) } }
    });
    html! {
        h1 { (en::GONE_TITLE) }
        p role="status" { (en::GONE_AT) " " (moment(now, &room.zone())) "." }
        (list(&report.plan))
        dl.facts {
            div { dt { (en::REMOVED_FILES) } dd { (counted(report.removed.len() as u64, en::MESSAGES)) } }
            div { dt { (en::RECORDED) } dd { (counted(report.numbers, en::NUMBERS_COUNTED)) } }
            @if !numbers.shown.is_empty() {
                div { dt { (en::NUMBERS_WORD) } dd {
                    @for (at, range) in numbers.shown.iter().enumerate() { @if at > 0 { ", " } (range) }
                    @if numbers.left > 0 { " " (en::and_more(numbers.left)) }
                } }
            }
        }
        p { (en::RECORD_EXPLAINED) }
        @if is_folder_gone { p { (en::FOLDER_GONE) } }
        @for failure in &left.shown { (failure) }
        @if left.left > 0 { p.failure { (en::and_more(left.left)) } }
        p { a href=(link::of("timeline", &room.scope)) { (en::BACK_TO_TIMELINE) } " · " a href="/" { (en::TO_CONVERSATIONS) } }
    }
}
