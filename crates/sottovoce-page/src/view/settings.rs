//! The settings of a conversation: its name, how long it is kept, its window, and who the model is in it.

mod persona;

use std::num::NonZeroU64;

use axum::extract::Form;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::store::{AffectedMessages, HiddenMessages, LimitsEffect, Profile, Retention};
use sottovoce::{ConversationStore, Error};

use crate::deed::Plan;
use crate::english as en;
use crate::failure::Failure;
use crate::html::{Place, Shell, brief, counted, cut, duration, layout, moment};
use crate::link;
use crate::room::Room;

const LONGEST_TITLE: usize = 200;
const LONGEST_TAG: usize = 64;
/// The most bytes of a title, and of all tags, that can be changed here.
const TITLE: usize = 1200;
const TAGS: usize = 6000;
/// The most bytes that are shown of a text that is too long to be changed here.
const BRIEF: usize = 600;

pub(crate) async fn show(room: Room) -> Result<Markup, Failure> {
    let persona = persona::section(&room).await?;
    let main = html! {
        h1 { (en::SETTINGS) }
        @if room.here.visit.read_only { p.failure { (en::READ_ONLY) } }
        (described(&room))
        (limited(&room))
        (windowed(&room))
        (persona)
    };
    Ok(page(&room, &main))
}

fn page(room: &Room, main: &Markup) -> Markup {
    let shell = Shell::of(Place::OwnSettings, en::SETTINGS, &room.scope, room.title());
    layout(&room.here.visit, &shell, main)
}

fn origin(is_own: bool) -> Markup {
    html! { p.origin { (if is_own { en::OWN } else { en::AS_CONFIGURED }) } }
}

fn described(room: &Room) -> Markup {
    let tags: Vec<String> = room.profile.tags.iter().cloned().collect();
    let tags = tags.join(", ");
    let title = room.profile.title.as_deref().unwrap_or_default();
    html! {
        form.settings method="post" action=(link::of("settings", &room.scope)) {
            (room.here.visit.csrf_field())
            h2 { (en::NAME) }
            (field(en::TITLE, title, TITLE, &html! { input name="title" maxlength=(LONGEST_TITLE) dir="auto" value=(title); }))
            (field(en::TAGS, &tags, TAGS, &html! { input name="tags" dir="auto" value=(tags); }))
            button name="what" value="name" { (en::SAVE) }
        }
    }
}

/// A text to be changed. One that is too long for that is shown in part, and stays as it is.
fn field(name: &str, text: &str, most: usize, control: &Markup) -> Markup {
    html! {
        @if cut(text, most).1 {
            p.muted { (name) ": " bdi { (brief(text, BRIEF)) } " — " (en::TOO_LONG_HERE) }
        } @else {
            label { (name) (control) }
        }
    }
}

fn limited(room: &Room) -> Markup {
    let retention =
        room.profile.retention.unwrap_or_else(|| room.here.app.house.config().retention());
    let most = retention.max_messages.map(|most| most.to_string()).unwrap_or_default();
    let ttl = retention.ttl_seconds.map_or(0, NonZeroU64::get);
    let (number, unit) = split(ttl);
    html! {
        form.settings method="post" action=(link::of("limits", &room.scope)) {
            (room.here.visit.csrf_field())
            h2 { (en::KEPT_TITLE) }
            (origin(room.profile.retention.is_some()))
            label { (en::MOST_MESSAGES) input type="number" name="most" min="2" value=(most) placeholder=(en::NO_LIMIT); }
            div.row {
                label { (en::TTL) input type="number" name="ttl" min="1" value=(number) placeholder=(en::NO_LIMIT); }
                label { (en::UNIT) (units(unit)) }
            }
            div.actions {
                button name="what" value="limits" { (en::SHOW_EFFECT) }
                button name="what" value="default" formnovalidate { (en::USE_CONFIGURED) }
            }
        }
    }
}

/// The number and the largest unit that make up these seconds.
fn split(seconds: u64) -> (String, u64) {
    let unit =
        [86_400, 3600, 60].into_iter().find(|unit| seconds > 0 && seconds.is_multiple_of(*unit));
    let unit = unit.unwrap_or(if seconds == 0 { 86_400 } else { 1 });
    (if seconds == 0 { String::new() } else { (seconds / unit).to_string() }, unit)
}

fn units(chosen: u64) -> Markup {
    html! {
        select name="unit" {
            @for (unit, (_, name)) in [(1, en::SECOND), (60, en::MINUTE), (3600, en::HOUR), (86_400, en::DAY)] {
                option value=(unit) selected[unit == chosen] { (name) }
            }
        }
    }
}

fn windowed(room: &Room) -> Markup {
    let config = &room.here.app.house.config().context;
    let rolls = room.profile.rolling_window.unwrap_or(config.rolling_window);
    let seconds = room.profile.window_seconds.map_or(config.window_seconds, NonZeroU64::get);
    let (number, unit) = split(seconds);
    let is_own = room.profile.rolling_window.is_some() || room.profile.window_seconds.is_some();
    html! {
        form.settings method="post" action=(link::of("settings", &room.scope)) {
            (room.here.visit.csrf_field())
            h2 { (en::WINDOW) }
            (origin(is_own))
            fieldset {
                legend { (en::PROMPTS_HOLD) }
                label.check { input type="radio" name="rolls" value="no" checked[!rolls]; (en::last_messages(config.last_n)) }
                label.check { input type="radio" name="rolls" value="yes" checked[rolls]; (en::ROLLING) }
            }
            div.row {
                label { (en::WINDOW_LENGTH) input type="number" name="ttl" min="1" value=(number); }
                label { (en::UNIT) (units(unit)) }
            }
            div.actions {
                button name="what" value="window" { (en::SAVE) }
                button name="what" value="window-default" formnovalidate { (en::USE_CONFIGURED) }
            }
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Change {
    what: String,
    // What is too long to be changed here is not part of the form.
    title: Option<String>,
    tags: Option<String>,
    rolls: String,
    ttl: String,
    unit: String,
    system: Option<String>,
    personality: Option<String>,
    temperature: String,
    days: String,
    preset: String,
}

pub(crate) async fn change(room: Room, Form(change): Form<Change>) -> Result<Redirect, Failure> {
    match change.what.as_str() {
        "name" => rename(&room, &change).await?,
        "window" | "window-default" => window(&room, &change).await?,
        "persona" => persona::edit(&room, &change).await?,
        "assign" => persona::assign(&room, &change).await?,
        "unassign" => persona::unassign(&room).await?,
        _ => return Err(Failure::wrong(en::NOTHING_SELECTED, en::GO_BACK)),
    }
    Ok(Redirect::to(&link::of("settings", &room.scope)))
}

/// A text without line breaks and characters that control.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ").trim().to_owned()
}

async fn rename(room: &Room, change: &Change) -> Result<(), Failure> {
    let title = change.title.as_deref().map(plain);
    let tags: Option<Vec<String>> = change
        .tags
        .as_ref()
        .map(|tags| tags.split(',').map(plain).filter(|tag| !tag.is_empty()).collect());
    if title.iter().any(|title| title.chars().count() > LONGEST_TITLE)
        || tags.iter().flatten().any(|tag| tag.chars().count() > LONGEST_TAG)
    {
        return Err(Failure::wrong(en::TOO_LONG, en::SHORTER));
    }
    let title = title.map(|title| Some(title).filter(|title| !title.is_empty()));
    let apply = move |profile: &mut Profile| {
        // A title that the model proposed stays the model's unless it is changed.
        if let Some(title) = title.as_ref().filter(|title| **title != profile.title) {
            profile.rename(title.clone());
        }
        if let Some(tags) = &tags {
            profile.tags = tags.iter().cloned().collect();
        }
    };
    room.store.change_profile(Box::new(apply)).await?;
    Ok(())
}

async fn window(room: &Room, change: &Change) -> Result<(), Failure> {
    let (rolling, seconds) = match (change.what.as_str(), change.rolls.as_str()) {
        ("window-default", _) => (None, None),
        (_, "yes") => {
            let seconds = seconds(&change.ttl, &change.unit)
                .ok_or_else(|| Failure::wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER))?;
            (Some(true), NonZeroU64::new(seconds))
        }
        _ => (Some(false), None),
    };
    let apply = move |profile: &mut Profile| {
        (profile.rolling_window, profile.window_seconds) = (rolling, seconds);
    };
    room.store.change_profile(Box::new(apply)).await?;
    Ok(())
}

fn seconds(number: &str, unit: &str) -> Option<u64> {
    let number: u64 = number.trim().parse().ok().filter(|number| *number > 0)?;
    number.checked_mul(unit.parse().ok()?)
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Limits {
    what: String,
    most: String,
    ttl: String,
    unit: String,
    plan: u64,
    hidden: String,
}

/// First what other limits would hide and show; then, agreed to, the change.
pub(crate) async fn limits(room: Room, Form(asked): Form<Limits>) -> Result<Response, Failure> {
    if asked.what == "agreed" {
        return agreed(&room, &asked).await;
    }
    let wanted = wanted(&asked)?;
    let effect = room.store.limits_effect(wanted).await?;
    Ok(announce(&room, wanted, effect, None).into_response())
}

fn wanted(asked: &Limits) -> Result<Option<Retention>, Failure> {
    if asked.what == "default" {
        return Ok(None);
    }
    let wrong = || Failure::wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER);
    let most = match asked.most.trim() {
        "" => 0,
        most => most.parse::<u32>().ok().filter(|most| *most > 1).ok_or_else(wrong)?,
    };
    let ttl = match asked.ttl.trim() {
        "" => 0,
        ttl => seconds(ttl, &asked.unit).ok_or_else(wrong)?,
    };
    Ok(Some(Retention::FOREVER.max_messages(most).ttl_seconds(ttl)))
}

fn announce(
    room: &Room,
    wanted: Option<Retention>,
    effect: LimitsEffect,
    notice: Option<&str>,
) -> Markup {
    let (hides, returns) = (effect.hides, effect.returns);
    let shown = wanted.unwrap_or_else(|| room.here.app.house.config().retention());
    let number = room.here.app.announced.keep(&room.scope, Plan::Limits(wanted, effect));
    let main = html! {
        h1 { (en::LIMITS_EFFECT) }
        @if let Some(notice) = notice { p.failure role="alert" { (notice) } }
        dl.facts {
            div { dt { (en::MOST_MESSAGES) } dd { (shown.max_messages.map_or_else(|| en::NO_LIMIT.to_owned(), |most| most.to_string())) } }
            div { dt { (en::TTL) } dd { (shown.ttl_seconds.map_or_else(|| en::NO_LIMIT.to_owned(), |ttl| duration(ttl.get()))) } }
        }
        ul.plan {
            @if hides.messages > 0 { li { strong { (affected(room, &hides)) } " " (en::WILL_BE_HIDDEN) } }
            @if returns.messages > 0 { li { strong { (affected(room, &returns)) } " " (en::WERE_HIDDEN) } }
            @if hides.messages == 0 && returns.messages == 0 { li { (en::HIDES_NOTHING) } }
        }
        form.confirm method="post" action=(link::of("limits", &room.scope)) {
            (room.here.visit.csrf_field())
            input type="hidden" name="plan" value=(number);
            @if returns.messages > 0 {
                fieldset {
                    legend { (en::HIDDEN_FATE) }
                    label.check { input type="radio" name="hidden" value="keep" required; (en::SHOW_AGAIN) }
                    label.check { input type="radio" name="hidden" value="delete" required; (en::DELETE_HIDDEN) }
                }
            }
            @if hides.messages > 0 { label.check { input type="checkbox" required; (en::I_AM_SURE) } }
            div.actions {
                button.primary name="what" value="agreed" { (en::CHANGE_LIMITS) }
                a.button href=(link::of("settings", &room.scope)) { (en::CANCEL) }
            }
        }
    };
    page(room, &main)
}

fn affected(room: &Room, messages: &AffectedMessages) -> Markup {
    let zone = room.zone();
    html! {
        (counted(messages.messages, en::MESSAGES))
        @if let (Some(first), Some(last)) = (messages.first, messages.last) {
            " (" (moment(first, &zone)) @if messages.messages > 1 { " – " (moment(last, &zone)) } ")"
        }
    }
}

async fn agreed(room: &Room, asked: &Limits) -> Result<Response, Failure> {
    let Some(Plan::Limits(wanted, effect)) = room.here.app.announced.take(&room.scope, asked.plan)
    else {
        return Err(Failure::wrong(en::PLAN_USED, en::PLAN_AGAIN));
    };
    let hidden = match asked.hidden.as_str() {
        "delete" => HiddenMessages::Delete,
        _ => HiddenMessages::Keep,
    };
    match room.store.change_limits(wanted, hidden, &effect).await {
        Err(Error::MoreThanAnnounced) => {
            let effect = room.store.limits_effect(wanted).await?;
            Ok(announce(room, wanted, effect, Some(en::CHANGED_MEANWHILE)).into_response())
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(Redirect::to(&link::of("settings", &room.scope)).into_response()),
    }
}
