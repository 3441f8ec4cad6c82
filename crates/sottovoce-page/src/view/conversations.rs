//! All conversations: whose they are, how much they hold, how long they are kept.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::admin::{Stats, scopes};
use sottovoce::config::OpenConversations;
use sottovoce::context::recall::SearchQuery;
use sottovoce::store::Profile;
use sottovoce::{ConversationStore, Scope, with_causes};
use std::sync::Arc;

use crate::english as en;
use crate::failure::Failure;
use crate::html::{Place, Shell, counted, duration, layout, moment, name, one_line, size};
use crate::link;
use crate::room::Here;

/// The most conversations on one page.
const SHOWN: usize = 60;

#[derive(Deserialize, Default)]
pub(crate) struct Asked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    kind: String,
    /// How many of the latest are left out, because an earlier page has them.
    #[serde(default)]
    after: String,
}

struct Row {
    scope: Scope,
    profile: Arc<Profile>,
    stats: Stats,
}

pub(crate) async fn show(here: Here, Query(asked): Query<Asked>) -> Result<Markup, Failure> {
    let open = here.store()?;
    let root = open.config().storage_root().map_err(|error| here.failed(error))?;
    let all = scopes(&root).map_err(|error| here.failed(error))?;
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for scope in all {
        match look(&open, scope.clone()).await {
            Ok(row) => rows.push(row),
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
    rows.retain(|row| row.is_meant(&asked));
    rows.sort_by(|a, b| (b.stats.last, &a.scope).cmp(&(a.stats.last, &b.scope)));
    let skipped: usize = asked.after.parse().unwrap_or(0);
    let total = rows.len();
    let shown: Vec<&Row> = rows.iter().skip(skipped).take(SHOWN).collect();
    let zone = here.zone();
    let more = (skipped + shown.len() < total).then(|| (skipped + shown.len()).to_string());
    let main = html! {
        h1 { (en::CONVERSATIONS) }
        @if is_empty {
            p { (en::NOTHING_SAID) }
            p { a.button href="/timeline/default" { (en::SAY_SOMETHING) } }
        } @else {
            (filters(&asked, &tags))
            ul.conversations #conversations {
                @for row in &shown {
                    li data-text=(row.text().to_lowercase()) {
                        a.title href=(link::of("timeline", &row.scope)) { bdi { (name(&row.scope, row.profile.title.as_deref())) } }
                        p.facts {
                            @if row.profile.title.is_some() { span { (one_line(&en::scope_name(&row.scope))) } }
                            @if row.profile.assigned_persona.is_some() { span { (en::CONTEXT) } }
                            span { (counted(row.stats.message_count, en::MESSAGES)) }
                            span { (size(row.stats.bytes)) }
                            @if let Some(last) = row.stats.last { span { (en::LAST_SAID) " " (moment(last, &zone)) } }
                            span { (kept(&row.stats)) }
                            @if let Some(at) = row.stats.expires_at {
                                span { @if row.stats.expires_in == Some(0) { (en::EXPIRED) } @else { (en::EXPIRES) " " (moment(at, &zone)) } }
                            }
                        }
                        @if !row.profile.tags.is_empty() {
                            p.tags { @for tag in row.profile.tags.iter().take(12) { a.tag href=(link::query_of("/", &[("tag", tag)])) { bdi { (one_line(tag)) } } } }
                        }
                    }
                }
            }
            p #none hidden { (en::NONE_MATCH) }
            @if shown.is_empty() { p { (en::NONE_MATCH) } }
            @if let Some(more) = &more {
                p.pages { a href=(link::query_of("/", &[("q", &asked.q), ("tag", &asked.tag), ("kind", &asked.kind), ("after", more)])) { (en::OLDER) } }
            }
            @for (scope, error) in &unreadable {
                div.failure role="alert" {
                    p { bdi { (one_line(&en::scope_name(scope))) } ": " (en::UNREADABLE) }
                    p.what { (error) }
                    p { a href="/health" { (en::TO_HEALTH) } }
                }
            }
        }
    };
    Ok(layout(&here.visit, &Shell::at(Place::Conversations, en::CONVERSATIONS), &main))
}

fn filters(asked: &Asked, tags: &[String]) -> Markup {
    let kinds = [
        ("", en::ALL_KINDS),
        ("person", en::PEOPLE),
        ("room", en::ROOMS),
        ("context", en::CONTEXTS),
    ];
    html! {
        form.filters method="get" action="/" role="search" {
            label { (en::FIND) input #find type="search" name="q" value=(asked.q) autocomplete="off" dir="auto"; }
            label { (en::KIND) select name="kind" {
                @for (value, text) in kinds { option value=(value) selected[asked.kind == value] { (text) } }
            } }
            @if !tags.is_empty() {
                label { (en::TAG) select name="tag" {
                    option value="" { (en::ANY_TAG) }
                    @for tag in tags { option value=(tag) selected[asked.tag == *tag] { (one_line(tag)) } }
                } }
            }
            button { (en::SHOW) }
        }
    }
}

async fn look(open: &OpenConversations, scope: Scope) -> sottovoce::Result<Row> {
    let (_, store) = open.open_with_files(&scope).await?;
    let (profile, stats) = (store.profile().await?, store.stats().await?);
    Ok(Row { scope, profile, stats })
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
    if both.is_empty() { en::KEPT.to_owned() } else { both.join(", ") }
}

impl Row {
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
            && SearchQuery::parse(&asked.q).matches(&self.text())
    }
}
