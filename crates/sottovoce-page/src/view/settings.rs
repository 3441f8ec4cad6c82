//! The settings of a conversation: its name, how long it is kept, its window, and who the model is in it.

use std::num::NonZeroU64;

use axum::extract::Form;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use sottovoce::persona::{PersonaChange, PersonaConversationChange};
use sottovoce::store::{AffectedMessages, HiddenMessages, LimitsEffect, Profile, Retention};
use sottovoce::{ConversationStore, Error, Scope};

use crate::deed::Plan;
use crate::english as en;
use crate::failure::Failure;
use crate::html::{Place, Shell, counted, duration, layout, moment};
use crate::link;
use crate::room::Room;

const LONGEST_TITLE: usize = 200;
const LONGEST_TAG: usize = 64;

pub(crate) async fn show(room: Room) -> Result<Markup, Failure> {
    let main = html! {
        h1 { (en::SETTINGS) }
        @if room.here.visit.read_only { p.failure { (en::READ_ONLY) } }
        (described(&room))
        (limited(&room))
        (windowed(&room))
        (persona(&room))
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
    html! {
        form.settings method="post" action=(link::of("settings", &room.scope)) {
            (room.here.visit.csrf_field())
            h2 { (en::NAME) }
            label { (en::TITLE) input name="title" maxlength="200" dir="auto" value=(room.profile.title.as_deref().unwrap_or_default()); }
            label { (en::TAGS) input name="tags" dir="auto" value=(tags.join(", ")); }
            button name="what" value="name" { (en::SAVE) }
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

fn persona(room: &Room) -> Markup {
    html! {
        @if let Some(assigned) = &room.profile.assigned_persona {
            form.settings method="post" action=(link::of("settings", &room.scope)) {
                (room.here.visit.csrf_field())
                h2 { (en::PERSONA) }
                (origin(true))
                label { (en::PERSONA_PROMPT) textarea name="system" rows="4" dir="auto" { (assigned.persona.system_prompt) } }
                label { (en::PERSONALITY) textarea name="personality" rows="3" dir="auto" { (assigned.persona.personality) } }
                label { (en::TEMPERATURE) input type="number" name="temperature" min="0" max="2" step="0.05" value=(assigned.persona.temperature); }
                label { (en::EXPIRY_DAYS) input type="number" name="days" min="1" value=(assigned.persona.expiry_days); }
                button name="what" value="persona" { (en::SAVE) }
            }
        } @else {
            section.settings {
                h2 { (en::PERSONA) }
                p { (en::NO_PERSONA) }
                details { summary { (en::SHOW_TEXT) } div.words.quote dir="auto" { (room.here.app.house.config().language_model.system_prompt) } }
            }
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Change {
    what: String,
    title: String,
    tags: String,
    rolls: String,
    ttl: String,
    unit: String,
    system: String,
    personality: String,
    temperature: String,
    days: String,
}

pub(crate) async fn change(room: Room, Form(change): Form<Change>) -> Result<Redirect, Failure> {
    match change.what.as_str() {
        "name" => rename(&room, &change).await?,
        "window" | "window-default" => window(&room, &change).await?,
        "persona" => edit_persona(&room, &change).await?,
        _ => return Err(room.here.wrong(en::NOTHING_SELECTED, en::GO_BACK)),
    }
    Ok(Redirect::to(&link::of("settings", &room.scope)))
}

/// A text without line breaks and characters that control.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ").trim().to_owned()
}

async fn rename(room: &Room, change: &Change) -> Result<(), Failure> {
    let title = plain(&change.title);
    let tags: Vec<String> =
        change.tags.split(',').map(plain).filter(|tag| !tag.is_empty()).collect();
    if title.chars().count() > LONGEST_TITLE
        || tags.iter().any(|tag| tag.chars().count() > LONGEST_TAG)
    {
        return Err(room.here.wrong(en::TOO_LONG, en::SHORTER));
    }
    let title = Some(title).filter(|title| !title.is_empty());
    let apply = move |profile: &mut Profile| {
        // A title that the model proposed stays the model's unless it is changed.
        if profile.title != title {
            profile.rename(title.clone());
        }
        profile.tags = tags.iter().cloned().collect();
    };
    room.store.change_profile(Box::new(apply)).await.map_err(|error| room.failed(error))?;
    Ok(())
}

async fn window(room: &Room, change: &Change) -> Result<(), Failure> {
    let (rolling, seconds) = match (change.what.as_str(), change.rolls.as_str()) {
        ("window-default", _) => (None, None),
        (_, "yes") => {
            let seconds = seconds(&change.ttl, &change.unit)
                .ok_or_else(|| room.here.wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER))?;
            (Some(true), NonZeroU64::new(seconds))
        }
        _ => (Some(false), None),
    };
    let apply = move |profile: &mut Profile| {
        (profile.rolling_window, profile.window_seconds) = (rolling, seconds);
    };
    room.store.change_profile(Box::new(apply)).await.map_err(|error| room.failed(error))?;
    Ok(())
}

async fn edit_persona(room: &Room, change: &Change) -> Result<(), Failure> {
    let Scope::Named { id } = &room.scope else { return Err(room.here.not_found(en::NO_PERSONA)) };
    let wrong = || room.here.wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER);
    let persona = PersonaChange {
        system_prompt: Some(change.system.trim().to_owned()),
        personality: Some(change.personality.trim().to_owned()),
        temperature: Some(change.temperature.parse().map_err(|_| wrong())?),
        expiry_days: Some(change.days.parse().map_err(|_| wrong())?),
        ..PersonaChange::default()
    };
    let update = PersonaConversationChange { persona, ..PersonaConversationChange::default() };
    let open = room.here.store()?;
    open.contexts().update(id, update).await.map_err(|error| room.failed(error))?;
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
    let wanted = wanted(&room, &asked)?;
    let effect = room.store.limits_effect(wanted).await.map_err(|error| room.failed(error))?;
    Ok(announce(&room, wanted, effect, None).into_response())
}

fn wanted(room: &Room, asked: &Limits) -> Result<Option<Retention>, Failure> {
    if asked.what == "default" {
        return Ok(None);
    }
    let wrong = || room.here.wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER);
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
        return Err(room.here.wrong(en::PLAN_USED, en::PLAN_AGAIN));
    };
    let hidden = match asked.hidden.as_str() {
        "delete" => HiddenMessages::Delete,
        _ => HiddenMessages::Keep,
    };
    match room.store.change_limits(wanted, hidden, &effect).await {
        Err(Error::MoreThanAnnounced) => {
            let effect =
                room.store.limits_effect(wanted).await.map_err(|error| room.failed(error))?;
            Ok(announce(room, wanted, effect, Some(en::CHANGED_MEANWHILE)).into_response())
        }
        Err(error) => Err(room.failed(error)),
        Ok(_) => Ok(Redirect::to(&link::of("settings", &room.scope)).into_response()),
    }
}
