//! One message: all its words, what is stored with it, where it lies, whether its seal holds, and its copies.

use std::sync::Arc;

use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::admin::RecordLocation;
use sottovoce::store::ForgetPlan;
use sottovoce::{ConversationStore, StoredMessage};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    Place, Shell, counted, cut, layout, moment, one_line, size, who, words as shown,
};
use crate::link;
use crate::room::Room;

/// The most bytes of a message on its page. A file has all of it.
const SHOWN: usize = 24 << 10;
const ENTRY: usize = 400;
const ENTRIES: usize = 60;

#[derive(Deserialize)]
pub(crate) struct Asked {
    n: u64,
    /// Whether only the part for the side of the timeline is wanted.
    #[serde(default)]
    part: u8,
}

pub(crate) async fn show(room: Room, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    let stored = find(&room, asked.n).await?;
    let gathered = async {
        let location = room.store.locate(&stored).await?;
        let plan = room.store.plan_forget(&[asked.n..=asked.n]).await?;
        Ok((location, plan))
    };
    let (location, plan) = gathered.await.map_err(|error| room.failed(error))?;
    let main = panel(&room, &stored, location.as_ref(), &plan);
    if asked.part == 1 {
        return Ok(main.into_response());
    }
    let shell = Shell::of(Place::Outside, en::MESSAGE_TITLE, &room.scope, room.title());
    Ok(layout(&room.here.visit, &shell, &html! { div.single { (main) } }).into_response())
}

/// The words of a message as a file.
pub(crate) async fn words(room: Room, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    let stored = find(&room, asked.n).await?;
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"message-{}.txt\"", asked.n)),
    ];
    Ok((headers, stored.message.content.clone()).into_response())
}

async fn find(room: &Room, number: u64) -> Result<Arc<StoredMessage>, Failure> {
    let read = room.store.read_seqs(number..=number).await.map_err(|error| room.failed(error))?;
    read.messages.into_iter().next().ok_or_else(|| room.here.not_found(en::NO_SUCH_MESSAGE))
}

fn panel(
    room: &Room,
    stored: &StoredMessage,
    location: Option<&RecordLocation>,
    plan: &ForgetPlan,
) -> Markup {
    let (scope, message, zone) = (&room.scope, &stored.message, room.zone());
    let (text, is_cut) = cut(&message.content, SHOWN);
    let number = stored.seq.to_string();
    html! {
        h1 { (en::MESSAGE_TITLE) " " (stored.seq) }
        p.muted { bdi { (who(stored)) } ", " (moment(message.said_at(), &zone)) }
        div.words.quote dir="auto" { (shown(scope, text)) @if is_cut { "…" } }
        p.more {
            a href=(link::message(scope, stored.seq)) { (en::IN_ITS_PLACE) }
            @if message.content.len() > 400 {
                " · " a href=(link::with("words", scope, &[("n", &number)])) { (en::AS_FILE) " (" (size(message.content.len() as u64)) ")" }
            }
        }
        dl.facts {
            (row(en::ROLE, &html! { (en::role(message.role)) }))
            @if let Some(thread) = &message.thread_id { (row(en::THREAD, &html! { bdi { (one_line(thread)) } })) }
            @for (name, value) in message.metadata.iter().take(ENTRIES) {
                @let (value, is_cut) = cut(value, ENTRY);
                div { dt { bdi { (en::metadata(name).map_or_else(|| one_line(name), str::to_owned)) } } dd dir="auto" { (value) @if is_cut { "…" } } }
            }
            @for call in message.tool_calls.iter().take(ENTRIES / 6) {
                @let arguments = call.arguments.to_string();
                @let (arguments, is_cut) = cut(&arguments, SHOWN / 8);
                (row(en::CALLED, &html! { code dir="ltr" { (one_line(&call.name)) " " (arguments) @if is_cut { "…" } } }))
            }
        }
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

fn row(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn lies(stored: &StoredMessage, location: Option<&RecordLocation>) -> Markup {
    html! {
        @if let Some(location) = location {
            dl.facts {
                (row(en::FILE, &html! {
                    code { (location.file) }
                    @if let Some(pack) = location.pack { br; (en::pack_of(&counted(pack, en::MESSAGES))) }
                }))
                @if location.pack.is_some() { (row(en::RECORD, &html! { code { (stored.file_name()) } })) }
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

fn copies(room: &Room, plan: &ForgetPlan) -> Markup {
    let numbers = |numbers: &[u64]| {
        html! { @for number in numbers.iter().take(50) { a href=(link::message(&room.scope, *number)) { (number) } " " } }
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
                @if !snapshots.is_empty() { (row(en::IN_SNAPSHOTS, &html! { @for id in snapshots { code { (one_line(id)) } " " } })) }
                @if plan.summaries > 0 { (row(en::IN_SUMMARIES, &html! { (plan.summaries) })) }
                @if !plan.artifacts.is_empty() {
                    (row(en::ARTIFACTS, &html! { @for id in &plan.artifacts { a href=(link::with("artifact", &room.scope, &[("id", id)])) { code { (id) } } " " } }))
                }
            }
        }
        p.muted { (en::BACKUPS_STAY) }
    }
}
