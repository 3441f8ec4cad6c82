//! All conversations: whose they are, how much they hold, how long they are kept.

use axum::extract::Query;
use axum::response::Response;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::admin::Stats;
use sottovoce::context::recall::SearchQuery;
use sottovoce::store::Profile;
use sottovoce::{ConversationStore, Scope, with_causes};
use std::sync::Arc;

use crate::english as en;
use crate::failure::Failure;
use crate::html::{
    BESIDE, Place, ROOM, Shell, counted, cut, duration, fitting, moment, name, one_line, size,
};
use crate::room::{Here, look_at};
use crate::{later, link};

/// The most conversations on one page, and the most tags of one.
const SHOWN: usize = 60;
const TAGS: usize = 12;
/// The most bytes of what finds a conversation while one types.
const FOUND_BY: usize = 600;
/// The most bytes of what is asked.
const LONGEST: usize = 2000;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Asked {
    q: String,
    tag: String,
    kind: String,
    /// How many of the latest are left out, because an earlier page has them.
    after: String,
}

struct Row {
    scope: Scope,
    profile: Arc<Profile>,
    stats: Stats,
}

pub(crate) async fn show(here: Here, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    if asked.q.len() + asked.tag.len() + asked.kind.len() + asked.after.len() > LONGEST {
        return Err(Failure::wrong(en::ASKED_TOO_LONG, en::ASK_SHORTER));
    }
    here.store()?;
    let listing = here.clone();
    // With many conversations, looking at each takes a while.
    let rest = async move { list(&listing, &asked).await };
    let shell = Shell::at(Place::Conversations, en::CONVERSATIONS);
    later::page(&here, &shell, html! { h1 { (en::CONVERSATIONS) } }, rest).await
}

async fn list(here: &Here, asked: &Asked) -> Result<Markup, Failure> {
    let open = here.store()?;
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for scope in here.scopes()? {
        let looked = async {
            let store = look_at(&open, &scope).await?;
            Ok::<_, sottovoce::Error>((store.profile().await?, store.stats().await?))
        };
        match looked.await {
            Ok((profile, stats)) => rows.push(Row { scope, profile, stats }),
            Err(error) => unreadable.push((scope, with_causes(&error))),
        }
    }
    // The default conversation's folder holds the presets, even if nothing was said there.
    rows.retain(|row| {
        row.scope != Scope::Default || !is_empty(&row.stats) || row.profile.has_metadata()
    });
    let is_empty = rows.is_empty() && unreadable.is_empty();
    let mut tags: Vec<String> =
        rows.iter().flat_map(|row| row.profile.tags.iter().cloned()).collect();
    tags.sort();
    tags.dedup();
    rows.retain(|row| row.is_meant(asked));
    rows.sort_by(|a, b| (b.stats.last, &a.scope).cmp(&(a.stats.last, &b.scope)));
    let skipped: usize = asked.after.parse().unwrap_or(0);
    let zone = here.zone();
    let shown = fitting(ROOM, rows.iter().skip(skipped).take(SHOWN), |row| row.item(&zone));
    let until = skipped + shown.shown.len();
    let more = (until < rows.len()).then(|| until.to_string());
    let unread = fitting(BESIDE, &unreadable, |(scope, error)| {
        html! {
            div.failure role="alert" {
                p { bdi { (one_line(&en::scope_name(scope))) } ": " (en::UNREADABLE) }
                p.what { (error) }
                p { a href="/health" { (en::TO_HEALTH) } }
            }
        }
    });
    Ok(html! {
        (beginning(here))
        @if is_empty {
            p { (en::NOTHING_SAID) }
            p { a.button href="/timeline/default" { (en::SAY_SOMETHING) } }
        } @else {
            (filters(asked, &tags))
            @if shown.shown.is_empty() { p { (en::NONE_MATCH) } } @else {
                ul.conversations #conversations { @for row in &shown.shown { (row) } }
                p #none hidden { (en::NONE_MATCH) }
            }
            @if let Some(more) = &more {
                p.pages { a href=(link::query_of("/", &[("q", &asked.q), ("tag", &asked.tag), ("kind", &asked.kind), ("after", more)])) { (en::OLDER) } }
            }
            @for failure in &unread.shown { (failure) }
            @if unread.left > 0 { p.failure { (en::and_more(unread.left)) } }
        }
    })
}

fn beginning(here: &Here) -> Markup {
    html! {
        @if !here.visit.read_only {
            form.row.begin method="post" action="/conversation" {
                (here.visit.csrf_field())
                label { (en::NEW_NAME) input name="name" required maxlength="100" dir="auto" autocomplete="off"; }
                button { (en::NEW_CONVERSATION) }
            }
        }
    }
}

fn filters(asked: &Asked, tags: &[String]) -> Markup {
    let kinds = [
        ("", en::ALL_KINDS),
        ("person", en::PEOPLE),
        ("room", en::ROOMS),
        ("context", en::CONTEXTS),
    ];
    let chosen = tags.iter().filter(|tag| **tag == asked.tag);
    let others = tags.iter().filter(|tag| **tag != asked.tag);
    let options = fitting(BESIDE, chosen.chain(others), |tag| {
        html! { option value=(tag) selected[asked.tag == *tag] { (one_line(tag)) } }
    });
    html! {
        form.filters method="get" action="/" role="search" {
            label { (en::FIND) input #find type="search" name="q" value=(asked.q) autocomplete="off" dir="auto"; }
            label { (en::KIND) select name="kind" {
                @for (value, text) in kinds { option value=(value) selected[asked.kind == value] { (text) } }
            } }
            @if !tags.is_empty() {
                label { (en::TAG) select name="tag" {
                    option value="" { (en::ANY_TAG) }
                    @for option in &options.shown { (option) }
                    @if options.left > 0 { option disabled { (en::and_more(options.left)) } }
                } }
            }
            button { (en::SHOW) }
        }
    }
}

fn is_empty(stats: &Stats) -> bool {
    stats.message_count + stats.hidden == 0 && stats.snapshots + stats.artifacts == 0
}

/// "kept for ever", "at most 15 messages, for 1 day".
pub(crate) fn kept(stats: &Stats) -> String {
    let most = stats
        .retention
        .max_messages
        .map(|most| en::at_most(&counted(most.get().into(), en::MESSAGES)));
    let ttl = stats.retention.ttl_seconds.map(|ttl| en::kept_for(&duration(ttl.get())));
    let both: Vec<String> = [most, ttl].into_iter().flatten().collect();
    match stats.expires_at {
        _ if !both.is_empty() => both.join(", "),
        None => en::KEPT.to_owned(),
        Some(_) => en::KEPT_TILL_EXPIRY.to_owned(),
    }
}

impl Row {
    fn item(&self, zone: &TimeZone) -> Markup {
        let Self { scope, profile, stats } = self;
        let text = self.text().to_lowercase();
        html! {
            li data-text=(cut(&text, FOUND_BY).0) {
                a.title href=(link::of("timeline", scope)) { bdi { (name(scope, profile.title.as_deref())) } }
                p.facts {
                    @if profile.title.is_some() { span { (one_line(&en::scope_name(scope))) } }
                    @if profile.assigned_persona.is_some() { span { (en::CONTEXT) } }
                    span { (counted(stats.message_count, en::MESSAGES)) }
                    span { (size(stats.bytes)) }
                    @if let Some(last) = stats.last { span { (en::LAST_SAID) " " (moment(last, zone)) } }
                    span { (kept(stats)) }
                    @if let Some(at) = stats.expires_at {
                        span { @if stats.expires_in == Some(0) { (en::EXPIRED) } @else { (en::EXPIRES) " " (moment(at, zone)) } }
                    }
                }
                @if !profile.tags.is_empty() {
                    p.tags {
                        @for tag in profile.tags.iter().take(TAGS) {
                            @let href = (tag.len() <= LONGEST / 4).then(|| link::query_of("/", &[("tag", tag)]));
                            a.tag href=[href] { bdi { (one_line(tag)) } }
                        }
                        @if profile.tags.len() > TAGS { (en::and_more((profile.tags.len() - TAGS) as u64)) }
                    }
                }
            }
        }
    }

    fn text(&self) -> String {
        let tags: Vec<&str> = self.profile.tags.iter().map(String::as_str).collect();
        let title = self.profile.title.as_deref().unwrap_or_default();
        format!("{} {title} {} {}", self.scope, en::scope_name(&self.scope), tags.join(" "))
    }

    fn is_meant(&self, asked: &Asked) -> bool {
        let is_kind = match asked.kind.as_str() {
            "person" => matches!(self.scope, Scope::Dm { .. }),
            "room" => {
                matches!(self.scope, Scope::Guild { .. } | Scope::Named { .. } if self.profile.assigned_persona.is_none())
            }
            "context" => self.profile.assigned_persona.is_some(),
            _ => true,
        };
        is_kind
            && (asked.tag.is_empty() || self.profile.tags.contains(&asked.tag))
            && SearchQuery::of_words(&asked.q).matches(&self.text())
    }
}
