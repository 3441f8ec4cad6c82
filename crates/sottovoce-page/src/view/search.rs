//! Search over all conversations, or over one: exact words, newest first, or what fits best.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::context::recall::{NotUnderstood, RecallHit, RecallQuery, SearchQuery, best_of};
use sottovoce::{Conversation, Scope, StoredMessage, with_causes};

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Marks, Place, ROOM, Shell, article, counted, date, fitting, local, name, one_line,
};
use crate::later;
use crate::link;
use crate::room::{Here, Room};

/// The most hits on the page.
const SHOWN: usize = 40;
/// The most bytes of what is asked.
const LONGEST: usize = 2000;

#[derive(Deserialize, Default)]
pub(crate) struct Asked {
    #[serde(default)]
    q: String,
    /// The conversation; empty for all of them.
    #[serde(default)]
    of: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    speaker: String,
    #[serde(default)]
    since: String,
    #[serde(default)]
    until: String,
    #[serde(default)]
    by: String,
}

/// A hit, with the score of the ranking and its reasons in words if there is one.
struct Hit {
    stored: Arc<StoredMessage>,
    title: Option<String>,
    ranked: Option<(f32, String)>,
}

#[derive(Default)]
struct Found {
    hits: Vec<Hit>,
    total: u64,
    /// How many matches each conversation has.
    by_scope: Vec<(Scope, Option<String>, u64)>,
    unreadable: Vec<(Scope, String)>,
}

pub(crate) async fn show(here: Here, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    if asked.fields().map(str::len).iter().sum::<usize>() > LONGEST {
        return Err(Failure::wrong(en::ASKED_TOO_LONG, en::ASK_SHORTER));
    }
    let all = here.scopes()?;
    let query = match asked.by.as_str() {
        // Ranking takes the words as they are.
        "fit" => Ok(SearchQuery::of_words(&asked.q)),
        _ => SearchQuery::parse(&asked.text()),
    };
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
        let found = find(&searching, &asked, &query, &all).await?;
        Ok(results(&searching, &asked, &found))
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
            fieldset {
                legend.hidden { (en::HOW) }
                label.check { input type="radio" name="by" value="words" checked[asked.by != "fit"]; (en::BY_WORDS) }
                label.check { input type="radio" name="by" value="fit" checked[asked.by == "fit"]; (en::BY_FIT) }
            }
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
) -> Result<Found, Failure> {
    let only: Option<Scope> = match asked.of.as_str() {
        "" => None,
        of => Some(of.parse().map_err(|_| Failure::NotFound(en::NO_SUCH_CONVERSATION))?),
    };
    let (mut found, mut lists) = (Found::default(), Vec::new());
    for scope in all.iter().filter(|scope| only.as_ref().is_none_or(|only| only == *scope)) {
        let room = Room::open(here.clone(), scope.clone()).await;
        let searched = match room {
            Err(Failure::Library(error)) => Err(with_causes(&*error)),
            Err(failure) => return Err(failure),
            Ok(room) => in_one(here, asked, query, &room.conversation)
                .await
                .map(|(hits, total)| (room, hits, total))
                .map_err(|error| with_causes(&error)),
        };
        match searched {
            Err(error) => found.unreadable.push((scope.clone(), error)),
            Ok((room, hits, total)) => {
                let title = room.title().map(str::to_owned);
                found.total += total;
                if total > 0 {
                    found.by_scope.push((scope.clone(), title.clone(), total));
                }
                let hit = |(stored, ranked)| Hit { stored, title: title.clone(), ranked };
                lists.push(hits.into_iter().map(hit).collect());
            }
        }
    }
    if asked.by == "fit" {
        let score = |hit: &Hit| hit.ranked.as_ref().map_or(0.0, |(score, _)| *score);
        found.hits = best_of(lists, SHOWN, score);
    } else {
        found.hits = lists.into_iter().flatten().collect();
        found.hits.sort_by_key(|hit| Reverse((hit.stored.ordered_at(), hit.stored.seq)));
        found.hits.truncate(SHOWN);
    }
    Ok(found)
}

/// The hits in one conversation with their scores and reasons, and how many there are in all.
async fn in_one(
    here: &Here,
    asked: &Asked,
    query: &SearchQuery,
    conversation: &Conversation,
) -> sottovoce::Result<(Vec<(Arc<StoredMessage>, Option<(f32, String)>)>, u64)> {
    let index = conversation.index();
    let found = if asked.by == "fit" {
        let now = here.app.house.clock().now();
        let recalled = index.find_in(&RecallQuery::new(&asked.q, now, SHOWN), None).await?;
        let ranked = |found: &RecallHit| (found.hit.score, found.hit.why.in_words());
        let found = recalled.hits.into_iter();
        let hits: Vec<_> =
            found.map(|found| (Arc::clone(&found.stored), Some(ranked(&found)))).collect();
        let total = hits.len() as u64;
        (hits, total)
    } else {
        let found = index.search(query, None, SHOWN).await?;
        (found.hits.into_iter().map(|stored| (stored, None)).collect(), found.total)
    };
    index.save_in_background();
    Ok(found)
}

fn results(here: &Here, asked: &Asked, found: &Found) -> Markup {
    let zone = here.zone();
    let hits = fitting(ROOM, &found.hits, |hit| {
        let scope = &*hit.stored.scope;
        html! {
            section.hit {
                p.place {
                    a href=(link::message(scope, hit.stored.seq)) { bdi { (name(scope, hit.title.as_deref())) } ", " (date(local(hit.stored.message.said_at(), &zone).date())) }
                    @if let Some((_, why)) = &hit.ranked { span.muted { " " (why) } }
                }
                (article(&hit.stored, &zone, &Marks::default()))
            }
        }
    });
    let can_forget = asked.by != "fit" && !here.visit.read_only;
    let text = asked.text();
    let forgettable = found.by_scope.iter().filter(|_| can_forget);
    let forms = fitting(BESIDE, forgettable, |(scope, title, total)| {
        html! {
            form method="post" action=(link::of("forget", scope)) {
                (here.visit.csrf_field())
                input type="hidden" name="q" value=(text);
                button.danger name="what" value="found" { (en::forget_found(&counted(*total, en::MESSAGES), &name(scope, title.as_deref()))) }
            }
        }
    });
    let unread = fitting(BESIDE, &found.unreadable, |(scope, error)| {
        html! { div.failure role="alert" { p { bdi { (one_line(&en::scope_name(scope))) } ": " (en::UNREADABLE) } p.what { (error) } } }
    });
    let shown = hits.shown.len() as u64;
    html! {
        p.muted role="status" {
            @if found.total == 0 { (en::NOTHING_FOUND) }
            @else if shown < found.total { (en::some_of(shown, &counted(found.total, en::HITS))) }
            @else { (counted(found.total, en::HITS)) }
        }
        @for hit in &hits.shown { (hit) }
        @for form in &forms.shown { (form) }
        @if forms.left > 0 { p.muted { (en::and_more(forms.left)) } }
        @for failure in &unread.shown { (failure) }
        @if unread.left > 0 { p.failure { (en::and_more(unread.left)) } }
    }
}

impl Asked {
    /// What was typed, first the words.
    fn fields(&self) -> [&str; 7] {
        let Self { q, by, of, from, speaker, since, until } = self;
        [q, by, of, from, speaker, since, until].map(String::as_str)
    }

    fn is_narrowed(&self) -> bool {
        self.fields().iter().skip(2).any(|field| !field.is_empty())
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
