//! What a conversation has beside its messages: where its context begins, its snapshots and its artifacts.

use axum::extract::Form;
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::ConversationStore;
use sottovoce::store::{ArtifactStore, Snapshot};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Fitting, Place, ROOM, Shell, brief, counted, fitting, layout, moment, one_line, size,
};
use crate::link;
use crate::room::Room;

/// The most bytes of a summary.
const SUMMARY: usize = 600;

pub(crate) async fn show(room: Room) -> Result<Markup, Failure> {
    let (snapshots, mut findings) = room.store.snapshots().await?;
    let (artifacts, more) = room.store.artifacts().await?;
    findings.extend(more);
    let zone = room.zone();
    let snapshots = fitting(ROOM / 2, &snapshots, |snapshot| item(&room, snapshot));
    let artifacts = fitting(ROOM / 2, &artifacts, |artifact| {
        html! {
            li {
                a.title href=(link::with("artifact", &room.scope, &[("id", &artifact.id)])) { bdi { (one_line(&artifact.name)) } }
                p.facts { span { (one_line(artifact.kind.as_str())) } span { (size(artifact.size)) } span { (moment(artifact.created_at, &zone)) } }
            }
        }
    });
    let findings = fitting(BESIDE, &findings, |finding| html! { p.failure { (finding) } });
    let main = html! {
        h1 { (en::SNAPSHOTS_HEADING) }
        h2 { (en::CONTEXT_BEGINS) }
        p {
            @match room.profile.cleared {
                Some(cleared) => { (en::CLEARED) " " (moment(cleared.at, &zone)) "." },
                None => (en::NOT_CLEARED),
            }
        }
        (form(&room, &html! {
            button name="what" value="clear" { (en::CLEAR) }
            @if room.profile.cleared.is_some() { button name="what" value="undo" { (en::UNDO_CLEAR) } }
        }))
        p.muted { (en::CLEAR_HELP) }
        h2 { (en::SNAPSHOTS_TITLE) }
        (form(&room, &html! {
            label { (en::DESCRIPTION) input name="description" dir="auto"; }
            button name="what" value="save" { (en::SAVE_SNAPSHOT) }
        }))
        p.muted { (en::SNAPSHOT_HELP) }
        (list(snapshots, en::NO_SNAPSHOTS))
        h2 { (en::ARTIFACTS) }
        (list(artifacts, en::NO_ARTIFACTS))
        @for finding in &findings.shown { (finding) }
        @if findings.left > 0 { p.failure { (en::and_more(findings.left)) } }
    };
    let shell = Shell::of(Place::Snapshots, en::SNAPSHOTS_TITLE, &room.scope, room.title());
    Ok(layout(&room.here.visit, &shell, &main))
}

fn form(room: &Room, controls: &Markup) -> Markup {
    html! {
        @if !room.here.visit.read_only {
            form.row.begin method="post" action=(link::of("snapshots", &room.scope)) { (room.here.visit.csrf_field()) (controls) }
        }
    }
}

fn item(room: &Room, snapshot: &Snapshot) -> Markup {
    let description = snapshot.description.as_deref().map(one_line).unwrap_or_default();
    let restore = html! {
        input type="hidden" name="id" value=(snapshot.id);
        button name="what" value="restore" { (en::RESTORE) }
    };
    html! {
        li {
            strong.title { bdi { @if description.is_empty() { (one_line(&snapshot.id)) } @else { (description) } } }
            p.facts { span { (moment(snapshot.saved_at, &room.zone())) } span { (counted(snapshot.messages.len() as u64, en::MESSAGES)) } }
            p dir="auto" { (brief(&snapshot.summary, SUMMARY)) }
            (form(room, &restore))
        }
    }
}

fn list(items: Fitting, none: &str) -> Markup {
    html! {
        @if items.shown.is_empty() && items.left == 0 { p.muted { (none) } }
        @else { ul.conversations { @for item in items.shown { (item) } } }
        @if items.left > 0 { p.muted { (en::and_more(items.left)) } }
    }
}

#[derive(Deserialize)]
pub(crate) struct Asked {
    what: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    description: String,
}

/// Deletes nothing.
pub(crate) async fn change(room: Room, Form(asked): Form<Asked>) -> Result<Redirect, Failure> {
    let conversation = &room.conversation;
    match asked.what.as_str() {
        "clear" => drop(conversation.clear().await?),
        "undo" => drop(conversation.undo_clear().await?),
        "save" => {
            let description = Some(asked.description.trim().to_owned());
            let description = description.filter(|description| !description.is_empty());
            conversation.save_snapshot(description).await?;
        }
        "restore" => {
            conversation.restore(&asked.id).await?;
            return Ok(Redirect::to(&link::of("timeline", &room.scope)));
        }
        _ => return Err(Failure::wrong(en::UNCLEAR, en::GO_BACK)),
    }
    Ok(Redirect::to(&link::of("snapshots", &room.scope)))
}
