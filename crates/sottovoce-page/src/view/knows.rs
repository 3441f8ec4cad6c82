//! What it knows about you: lasting things that people said of themselves, found by what they mean, each with its date.

use std::collections::HashSet;

use axum::response::Response;
use maud::{Markup, html};
use sottovoce::ChatRole;
use sottovoce::context::recall::{RecallHit, RecallQuery, best_of};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{Marks, Place, ROOM, Shell, article, counted, date, fitting, local, name};
use crate::room::{Here, Room};
use crate::{later, link};

/// The most messages under one heading.
const EACH: usize = 12;
/// How much a message must mean what the heading asks for.
const ALIKE: f32 = 0.3;

pub(crate) async fn show(here: Here) -> Result<Response, Failure> {
    let first = html! { h1 { (en::KNOWS_TITLE) } p.muted { (en::KNOWS_INTRO) } };
    here.store()?;
    let looking = here.clone();
    let rest = async move { found(&looking).await };
    later::page(&here, &Shell::at(Place::Data, en::KNOWS_TITLE), first, rest).await
}

async fn found(here: &Here) -> Result<Markup, Failure> {
    let (mut rooms, mut known, mut all) = (Vec::new(), 0, 0);
    for scope in here.scopes()? {
        // Health tells of a conversation that cannot be read.
        let Ok(room) = Room::open(here.clone(), scope).await else { continue };
        let index = room.conversation.index();
        let understood = index.understood().await?;
        (known, all) = (known + understood.known, all + understood.all);
        // Gives more messages their meanings, too.
        index.save_in_background();
        rooms.push(room);
    }
    let (now, zone) = (here.app.house.clock().now(), here.zone());
    let mut seen = HashSet::new();
    let mut topics = Vec::new();
    for (heading, question) in en::KNOWS_TOPICS {
        let mut lists = Vec::new();
        for (place, room) in rooms.iter().enumerate() {
            let query = RecallQuery::new(question, now.clone(), 4 * EACH);
            let hits = room.conversation.index().find_in(&query, None).await?.hits;
            let hits = hits.into_iter().filter(is_lasting).map(|hit| (place, hit));
            lists.push(hits.collect::<Vec<_>>());
        }
        let mut hits = best_of(lists, EACH, |(_, found)| found.hit.score);
        hits.retain(|(place, found)| seen.insert((*place, found.stored.seq)));
        topics.push((heading, hits));
    }
    let item = |(place, found): &(usize, RecallHit)| {
        let (stored, Some(room)) = (&found.stored, rooms.get(*place)) else { return html! {} };
        let said = local(stored.message.said_at(), &zone).date();
        html! {
            section.hit {
                p.place { a href=(link::message(&room.scope, stored.seq)) { bdi { (name(&room.scope, room.title())) } ", " (date(said)) } }
                (article(stored, &zone, &Marks::default()))
                @if !here.visit.read_only {
                    form method="post" action=(link::of("forget", &room.scope)) {
                        (here.visit.csrf_field())
                        input type="hidden" name="seq" value=(stored.seq);
                        button.danger name="what" value="picked" { (en::FORGET_THIS) }
                    }
                }
            }
        }
    };
    Ok(html! {
        @if known < all { p.notice { (en::some_of(known as u64, &counted(all as u64, en::MESSAGES))) " " (en::KNOWS_SO_FAR) } }
        @for (heading, hits) in &topics {
            h2 { (heading) }
            @if hits.is_empty() { p.muted { (en::KNOWS_NOTHING) } }
            @let shown = fitting(ROOM / topics.len(), hits, item);
            @for hit in &shown.shown { (hit) }
            @if shown.left > 0 { p.muted { (en::and_more(shown.left)) } }
        }
    })
}

/// Whether a person said it, as a statement, and it is about what was asked.
fn is_lasting(found: &RecallHit) -> bool {
    let why = &found.hit.why;
    found.stored.message.role == ChatRole::User && why.alike >= ALIKE && why.tells > 0.
}
