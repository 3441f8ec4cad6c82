//! One message: all its words, what is stored with it, where it lies, whether its seal holds, and its copies.

mod whole;

use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::admin::RecordLocation;
use sottovoce::store::ForgetPlan;
use sottovoce::{ConversationStore, StoredMessage};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Fitting, Place, Shell, beginning, brief, counted, fitting, layout, moment, one_line,
    size, who,
};
use crate::link;
use crate::room::Room;
use whole::find;
pub(crate) use whole::whole;

/// The most bytes of a message on its page, and of one entry of what is stored with it. A file has all of it.
const SHOWN: usize = 24 << 10;
const ENTRY: usize = 400;
const CALL: usize = 3 << 10;

#[derive(Deserialize)]
pub(crate) struct Asked {
    n: u64,
    /// Whether only the part for the side of the timeline is wanted.
    #[serde(default)]
    part: u8,
}

pub(crate) async fn show(room: Room, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    let stored = find(&room, asked.n).await?;
    let location = room.store.locate(&stored).await?;
    let plan = room.store.plan_forget(&[asked.n..=asked.n]).await?;
    let main = panel(&room, &stored, location.as_ref(), &plan);
    if asked.part == 1 {
        return Ok(main.into_response());
    }
    let shell = Shell::of(Place::Outside, en::MESSAGE_TITLE, &room.scope, room.title());
    Ok(layout(&room.here.visit, &shell, &html! { div.single { (main) } }).into_response())
}

fn panel(
    room: &Room,
    stored: &StoredMessage,
    location: Option<&RecordLocation>,
    plan: &ForgetPlan,
) -> Markup {
    let (scope, message, zone) = (&room.scope, &stored.message, room.zone());
    let number = stored.seq.to_string();
    let file = |what| link::with("words", scope, &[("n", &number), ("what", what)]);
    let entries = fitting(2 * BESIDE, &message.metadata, |(name, value)| {
        let name = en::metadata(name).map_or_else(|| one_line(name), str::to_owned);
        html! { div { dt { bdi { (name) } } dd dir="auto" { (brief(value, ENTRY)) } } }
    });
    let calls = fitting(2 * BESIDE, &message.tool_calls, |call| {
        let shown = brief(&call.arguments.to_string(), CALL);
        row(en::CALLED, &html! { code dir="ltr" { (one_line(&call.name)) " " (shown) } })
    });
    html! {
        h1 { (en::MESSAGE_TITLE) " " (stored.seq) }
        p.muted { bdi { (who(stored)) } ", " (moment(message.said_at(), &zone)) ", " (one_line(&message.source_in_words())) }
        div.quote { (beginning(scope, &message.content, SHOWN, Some(&file("")))) }
        p.more {
            a href=(link::message(scope, stored.seq)) { (en::IN_ITS_PLACE) }
            @if message.content.len() > 400 { " · " a href=(file("")) { (en::AS_FILE) " (" (size(message.content.len() as u64)) ")" } }
            " · " a href=(file("record")) { (en::WITH_ALL_STORED) }
        }
        dl.facts {
            (row(en::ROLE, &html! { (en::role(message.role)) }))
            @if let Some(thread) = &message.thread_id { (row(en::THREAD, &html! { bdi { (one_line(thread)) } })) }
            @for entry in &entries.shown { (entry) }
            @for call in &calls.shown { (call) }
        }
        @if entries.left + calls.left > 0 { p.more { a href=(file("record")) { (en::and_more(entries.left + calls.left)) } } }
        h2 { (en::WHERE_IT_LIES) }
        (lies(stored, location))
        h2 { (en::COPIES) }
        (copies(room, plan))
        @if !room.here.visit.read_only {
            form method="post" action=(link::of("forget", scope)) {
                (room.here.visit.csrf_field())
                input type="hidden" name="seq" value=(stored.seq);
                button.danger name="what" value="picked" { (en::FORGET_THIS) }
            }
        }
    }
}

/// The items of a list in a line.
fn list(items: Fitting) -> Markup {
    html! {
        @for item in items.shown { (item) " " }
        @if items.left > 0 { (en::and_more(items.left)) }
    }
}

fn row(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn lies(stored: &StoredMessage, location: Option<&RecordLocation>) -> Markup {
    html! {
        @if let Some(location) = location {
            dl.facts {
                (row(en::FILE, &html! {
                    code { (name_of_file(&location.file)) }
                    @if let Some(pack) = location.pack { br; (en::pack_of(&counted(pack, en::MESSAGES))) }
                }))
                @if location.pack.is_some() { (row(en::RECORD, &html! { code { (name_of_file(&stored.file_name())) } })) }
                (row(en::SEALED_SIZE, &html! { (size(location.bytes)) }))
                (row(en::SEAL, &html! {
                    @match &location.broken {
                        None => span.good { (en::SEAL_HOLDS) },
                        Some(broken) => { span.bad { (en::SEAL_BROKEN) } " " (broken) " " a href="/health" { (en::TO_HEALTH) } },
                    }
                }))
                @if let Some(key) = &location.key_id { (row(en::KEY, &html! { code { (key) } })) }
            }
        } @else {
            p.bad { (en::NOWHERE) }
        }
    }
}

/// A name that breaks between its parts.
fn name_of_file(name: &str) -> Markup {
    html! { @for part in name.split_inclusive(['_', '.', '/']) { (part) wbr; } }
}

fn copies(room: &Room, plan: &ForgetPlan) -> Markup {
    let numbers = |numbers: &[u64]| {
        list(fitting(BESIDE / 2, numbers, |number| {
            html! { a href=(link::message(&room.scope, *number)) { (number) } }
        }))
    };
    let snapshots: Vec<&String> = plan
        .changed_snapshots
        .iter()
        .chain(&plan.deleted_snapshots)
        .chain(&plan.closed_snapshots)
        .collect();
    let is_alone = plan.copies.is_empty()
        && plan.originals.is_empty()
        && snapshots.is_empty()
        && plan.summaries == 0
        && plan.artifacts.is_empty();
    html! {
        @if is_alone {
            p { (en::NO_COPIES) }
        } @else {
            dl.facts {
                @if !plan.originals.is_empty() { (row(en::ORIGINAL, &numbers(&plan.originals))) }
                @if !plan.copies.is_empty() { (row(en::RESTORED_COPIES, &numbers(&plan.copies))) }
                @if !snapshots.is_empty() { (row(en::IN_SNAPSHOTS, &list(fitting(BESIDE / 2, snapshots, |id| html! { code { (one_line(id)) } })))) }
                @if plan.summaries > 0 { (row(en::IN_SUMMARIES, &html! { (plan.summaries) })) }
                @if !plan.artifacts.is_empty() {
                    (row(en::ARTIFACTS, &list(fitting(BESIDE / 2, &plan.artifacts, |id| {
                        html! { a href=(link::with("artifact", &room.scope, &[("id", id)])) { code { (id) } } }
                    }))))
                }
            }
        }
        p.muted { (en::BACKUPS_STAY) }
    }
}
