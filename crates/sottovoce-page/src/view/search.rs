//! Search over all conversations, or over one: exact words, newest first, else what fits best.

use std::sync::Arc;

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::context::recall::{Found, Lookup, NotUnderstood, Recall, SearchQuery, Stage};
use sottovoce::{Scope, with_causes};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Marks, Place, ROOM, Shell, article, counted, date, fitting, local, name, one_line,
};
use crate::room::{Here, Room};
use crate::{later, link};

/// The most hits on the page.
const SHOWN: usize = 40;
/// The most bytes of what is asked.
const LONGEST: usize = 2000;

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub(crate) struct Asked {
    q: String,
    /// The conversation; empty for all of them.
    of: String,
    from: String,
    speaker: String,
    since: String,
    until: String,
}

/// What was found, and around it.
struct Outcome {
    found: Found,
    /// The conversations that were searched.
    rooms: Vec<Room>,
    /// The others with matches, and how many each has.
    elsewhere: Vec<(Room, u64)>,
    unreadable: Vec<(Scope, String)>,
}

pub(crate) async fn show(here: Here, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    if asked.fields().map(str::len).iter().sum::<usize>() > LONGEST {
        return Err(Failure::wrong(en::ASKED_TOO_LONG, en::ASK_SHORTER));
    }
    let all = here.scopes()?;
    let query = SearchQuery::parse(&asked.text());
    let is_asked = query.as_ref().is_ok_and(|query| !query.is_empty());
    let first = html! {
        h1 { (en::SEARCH) }
        (form(&asked, &all))
        @if let Err(unknown) = &query {
            p.failure role="alert" { (not_understood(unknown)) " " (en::WRITE_A_SEARCH) }
        } @else if !is_asked { p.muted { (en::SEARCH_HELP) } }
    };
    let searching = here.clone();
    let rest = async move {
        let Some(query) = query.ok().filter(|_| is_asked) else { return Ok(html! {}) };
        let outcome = find(&searching, &asked, &query, &all).await?;
        Ok(results(&searching, &asked, &outcome))
    };
    later::page(&here, &Shell::at(Place::Search, en::SEARCH), first, rest).await
}

/// What is wrong with a search.
pub(crate) fn not_understood(unknown: &NotUnderstood) -> String {
    format!("“{}” {}", one_line(unknown.part()), en::NOT_UNDERSTOOD)
}

fn form(asked: &Asked, all: &[Scope]) -> Markup {
    let roles = [
        ("", en::ANYBODY),
        ("me", en::PEOPLE),
        ("assistant", en::ASSISTANT),
        ("tool", en::TOOL),
        ("system", en::SYSTEM),
    ];
    // The one that is searched stands first, so that it fits.
    let is_chosen = |scope: &&Scope| scope.to_string() == asked.of;
    let chosen = all.iter().filter(is_chosen);
    let others = all.iter().filter(|scope| !is_chosen(scope));
    let scopes = fitting(2 * BESIDE, chosen.chain(others), |scope| {
        let text = scope.to_string();
        html! { option value=(text) selected[asked.of == text] { (one_line(&en::scope_name(scope))) } }
    });
    html! {
        form.search method="get" action="/search" role="search" {
            label.wide { (en::WORDS) input type="search" name="q" value=(asked.q) dir="auto" autocomplete="off"; }
            details open[asked.is_narrowed()] {
                summary { (en::NARROW) }
                div.filters {
                    label { (en::CONVERSATION) select name="of" {
                        option value="" { (en::ALL_OF_THEM) }
                        @for scope in &scopes.shown { (scope) }
                        @if scopes.left > 0 { option disabled { (en::and_more(scopes.left)) } }
                    } }
                    label { (en::SAID_BY) select name="from" {
                        @for (value, text) in roles { option value=(value) selected[asked.from == value] { (text) } }
                    } }
                    label { (en::SPEAKER) input name="speaker" value=(asked.speaker) dir="auto"; }
                    label { (en::SINCE) input type="date" name="since" value=(asked.since); }
                    label { (en::UNTIL) input type="date" name="until" value=(asked.until); }
                }
            }
            button.primary { (en::SEARCH) }
        }
    }
}

async fn find(
    here: &Here,
    asked: &Asked,
    query: &SearchQuery,
    all: &[Scope],
) -> Result<Outcome, Failure> {
    let only: Option<Scope> = match asked.of.as_str() {
        "" => None,
        of => Some(of.parse().map_err(|_| Failure::NotFound(en::NO_SUCH_CONVERSATION))?),
    };
    let (mut rooms, mut others, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for scope in all {
        let is_meant = only.as_ref().is_none_or(|only| only == scope);
        match Room::open(here.clone(), scope.clone()).await {
            Ok(room) if is_meant => rooms.push(room),
            Ok(room) => others.push(room),
            Err(Failure::Library(error)) => unreadable.push((scope.clone(), with_causes(&*error))),
            Err(failure) => return Err(failure),
        }
    }
    let index = |room: &Room| Arc::clone(room.conversation.index());
    let indexes: Vec<_> = rooms.iter().map(index).collect();
    let now = here.app.house.clock().now();
    let mut found = Lookup::new(query, now, SHOWN).run(&indexes).await;
    for (place, error) in std::mem::take(&mut found.failed) {
        let failed = rooms.get(place).map(|room| (room.scope.clone(), with_causes(&error)));
        unreadable.extend(failed);
    }
    let mut elsewhere = Vec::new();
    for room in others {
        // What cannot be searched is told when it is.
        let counted = index(&room).search(query, None, 0).await.unwrap_or_default();
        if counted.total > 0 {
            elsewhere.push((room, counted.total));
        }
    }
    indexes.iter().for_each(Recall::save_in_background);
    Ok(Outcome { found, rooms, elsewhere, unreadable })
}

fn results(here: &Here, asked: &Asked, outcome: &Outcome) -> Markup {
    let Outcome { found, rooms, elsewhere, unreadable } = outcome;
    let zone = here.zone();
    let hits = fitting(ROOM, &found.hits, |hit| {
        let scope = &*hit.stored.scope;
        let title = rooms.get(hit.place).and_then(Room::title);
        let marks = Marks { passage: Some(&hit.passage), ..Marks::default() };
        html! {
            section.hit {
                p.place {
                    a href=(link::message(scope, hit.stored.seq)) { bdi { (name(scope, title)) } ", " (date(local(hit.stored.message.said_at(), &zone).date())) }
                    @if let Some(fits) = &hit.fits { span.muted { " " (fits.why.in_words()) } }
                }
                (article(&hit.stored, &zone, &marks))
            }
        }
    });
    let text = asked.text();
    let matching = || rooms.iter().zip(&found.totals).filter(|(_, total)| **total > 0);
    let forms = fitting(BESIDE, matching().filter(|_| !here.visit.read_only), |(room, total)| {
        html! {
            form method="post" action=(link::of("forget", &room.scope)) {
                (here.visit.csrf_field())
                input type="hidden" name="q" value=(text);
                button.danger name="what" value="found" { (en::forget_found(&counted(*total, en::MESSAGES), &name(&room.scope, room.title()))) }
            }
        }
    });
    let narrowed = |room: &Room, total| {
        let of = room.scope.to_string();
        let to = Asked { of, ..asked.clone() }.address();
        html! { li { a href=(to) { bdi { (name(&room.scope, room.title())) } } " " (counted(total, en::HITS)) } }
    };
    let spread = matching().filter(|_| matching().count() > 1);
    let spread = fitting(BESIDE, spread, |(room, total)| narrowed(room, *total));
    let others = fitting(BESIDE, elsewhere, |(room, total)| narrowed(room, *total));
    let unread = fitting(BESIDE, unreadable, |(scope, error)| {
        html! { div.failure role="alert" { p { bdi { (one_line(&en::scope_name(scope))) } ": " (en::UNREADABLE) } p.what { (error) } } }
    });
    let (shown, total) = (hits.shown.len() as u64, found.total());
    html! {
        p.muted role="status" {
            @if found.stage == Stage::Fitting { (en::NONE_EXACT) }
            @else if total == 0 { (en::NOTHING_FOUND) }
            @else if shown < total { (en::some_of(shown, &counted(total, en::HITS))) }
            @else { (counted(total, en::HITS)) }
        }
        @if let Some(meant) = &found.did_you_mean {
            p { (en::DID_YOU_MEAN) " " a href=(Asked { q: meant.clone(), ..asked.clone() }.address()) { bdi { (meant) } } "?" }
        }
        @for (heading, list) in [(en::SPREAD, &spread), (en::ELSEWHERE, &others)] {
            @if !list.shown.is_empty() {
                p.muted { (heading) }
                ul.spread { @for item in &list.shown { (item) } }
                @if list.left > 0 { p.muted { (en::and_more(list.left)) } }
            }
        }
        @if found.stage == Stage::Fitting { h2 { (en::FITTING) } }
        @for hit in &hits.shown { (hit) }
        @for form in &forms.shown { (form) }
        @if forms.left > 0 { p.muted { (en::and_more(forms.left)) } }
        @for failure in &unread.shown { (failure) }
        @if unread.left > 0 { p.failure { (en::and_more(unread.left)) } }
    }
}

impl Asked {
    /// What was typed, first the words.
    fn fields(&self) -> [&str; 6] {
        let Self { q, of, from, speaker, since, until } = self;
        [q, of, from, speaker, since, until].map(String::as_str)
    }

    /// Where the same is asked.
    fn address(&self) -> String {
        let names = ["q", "of", "from", "speaker", "since", "until"];
        let fields: Vec<_> = names.into_iter().zip(self.fields()).collect();
        link::query_of("/search", &fields)
    }

    fn is_narrowed(&self) -> bool {
        self.fields().iter().skip(1).any(|field| !field.is_empty())
    }

    /// The words with the filters, as a search is written.
    fn text(&self) -> String {
        let mut text = self.q.clone();
        // What is no day stays as it is, so that it is refused.
        let day = |text: &str, by: i64| {
            let day = text.parse::<jiff::civil::Date>();
            let day = day.and_then(|day| day.checked_add(jiff::Span::new().days(by)));
            day.map_or_else(|_| text.to_owned(), |day| day.to_string())
        };
        for (filter, value) in [
            ("from", self.from.clone()),
            ("speaker", self.speaker.replace('"', "")),
            // `after:` and `before:` leave out the days that they name.
            ("after", day(&self.since, -1)),
            ("before", day(&self.until, 1)),
        ] {
            if !value.trim().is_empty() {
                let quote = if value.contains(char::is_whitespace) { "\"" } else { "" };
                text.push_str(&format!(" {filter}:{quote}{value}{quote}"));
            }
        }
        text
    }
}
