//! The frame of every page: head, navigation, and where the content goes.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sottovoce::Scope;

use crate::english as en;
use crate::html::assets::{ICON, SCRIPT, STYLE};
use crate::html::format::name;
use crate::link;

/// The browser that asks.
#[derive(Clone)]
pub(crate) struct Visit {
    /// What every form holds, so that no other page can have made it.
    pub(crate) csrf: String,
    pub(crate) read_only: bool,
}

impl Visit {
    pub(crate) fn csrf_field(&self) -> Markup {
        html! { input type="hidden" name="csrf" value=(self.csrf); }
    }
}

/// Where a page stands among the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Outside,
    Conversations,
    Search,
    Numbers,
    Health,
    Data,
    Settings,
    Timeline,
    Sees,
    Snapshots,
    Forget,
    OwnNumbers,
    OwnSettings,
}

/// What a page has around its content.
pub(crate) struct Shell<'a> {
    pub(crate) title: &'a str,
    pub(crate) place: Place,
    /// The conversation that it is about, with its title.
    pub(crate) of: Option<(&'a Scope, Option<&'a str>)>,
    /// Whether it loads itself again, without a script, because something is going on.
    pub(crate) refresh: bool,
}

impl<'a> Shell<'a> {
    pub(crate) fn at(place: Place, title: &'a str) -> Self {
        Self { title, place, of: None, refresh: false }
    }

    pub(crate) fn outside(title: &'a str) -> Self {
        Self::at(Place::Outside, title)
    }

    pub(crate) fn of(place: Place, title: &'a str, scope: &'a Scope, own: Option<&'a str>) -> Self {
        Self { title, place, of: Some((scope, own)), refresh: false }
    }
}

/// A whole page.
pub(crate) fn layout(visit: &Visit, shell: &Shell<'_>, main: &Markup) -> Markup {
    let top = [
        (Place::Conversations, "/", en::CONVERSATIONS),
        (Place::Search, "/search", en::SEARCH),
        (Place::Numbers, "/numbers", en::NUMBERS),
        (Place::Health, "/health", en::HEALTH),
        (Place::Data, "/data", en::YOUR_DATA),
        (Place::Settings, "/settings", en::SETTINGS),
    ];
    let own = [
        (Place::Timeline, "timeline", en::TIMELINE),
        (Place::Sees, "sees", en::SEES),
        (Place::Snapshots, "snapshots", en::SNAPSHOTS_TITLE),
        (Place::OwnNumbers, "numbers", en::NUMBERS),
        (Place::OwnSettings, "settings", en::SETTINGS),
        (Place::Forget, "forget", en::FORGET),
    ];
    let current = |place| (shell.place == place).then_some("page");
    let title = shell.of.map(|(scope, own)| format!("{} — {}", shell.title, name(scope, own)));
    let title = title.unwrap_or_else(|| shell.title.to_owned());
    document(
        &title,
        shell.refresh,
        &html! {
            a.skip href="#main" { (en::SKIP) }
            div.head { header.top {
                a.mark href="/" { "sotto" em { "voce" } }
                @if !visit.csrf.is_empty() {
                    nav aria-label=(en::MAIN) {
                        @for (place, href, text) in top {
                            a href=(href) aria-current=[current(place)] { (text) }
                        }
                    }
                    form.lock method="post" action="/lock" {
                        (visit.csrf_field())
                        button.quiet { (en::LOCK) }
                    }
                }
            }
            @if visit.read_only { p.notice role="status" { (en::READ_ONLY_NOTICE) } }
            @if let Some((scope, own_title)) = shell.of {
                section.conversation aria-label=(en::ONE_CONVERSATION) {
                    p.title { a href=(link::of("timeline", scope)) { bdi { (name(scope, own_title)) } } }
                    nav aria-label=(en::OF_CONVERSATION) {
                        @for (place, view, text) in own {
                            a href=(link::of(view, scope)) aria-current=[current(place)] { (text) }
                        }
                    }
                }
            }
            }
            main #main tabindex="-1" { (main) }
        },
    )
}

/// A page in two parts, between which its further content comes.
pub(crate) fn around(visit: &Visit, shell: &Shell<'_>, first: &Markup) -> (String, String) {
    // Nothing that was said can hold this, since it is escaped.
    const PLACE: &str = "<!--further-->";
    let page = layout(visit, shell, &html! { (first) (PreEscaped(PLACE)) }).into_string();
    match page.split_once(PLACE) {
        Some((before, after)) => (before.to_owned(), after.to_owned()),
        None => (page, String::new()),
    }
}

fn document(title: &str, refresh: bool, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if refresh { noscript { meta http-equiv="refresh" content="2"; } }
                title { (title) " · Sottovoce" }
                link rel="icon" href=(ICON);
                link rel="stylesheet" href=(STYLE);
                script src=(SCRIPT) defer {}
            }
            body { (body) }
        }
    }
}
