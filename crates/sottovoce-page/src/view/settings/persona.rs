//! Who the model is in a conversation: assigned from a preset or in the owner's words, changed, and taken away.

use maud::{Markup, html};
use sottovoce::persona::{self, AssignedPersona, Persona, PersonaChange, Preset};
use sottovoce::with_causes;

use super::{BRIEF, Change, field, origin};
use crate::english as en;
use crate::failure::Failure;
use crate::html::{BESIDE, beginning, brief, cut, fitting, one_line};
use crate::link;
use crate::room::Room;

/// The most bytes of a text that can be changed here, and that is shown of the configured one.
const LONGEST: usize = 20_000;
const SHOWN: usize = 4000;

pub(super) async fn section(room: &Room) -> Result<Markup, Failure> {
    Ok(match &room.profile.assigned_persona {
        Some(assigned) => assigned_form(room, assigned),
        None => offer(room).await?,
    })
}

fn assigned_form(room: &Room, assigned: &AssignedPersona) -> Markup {
    let persona = &assigned.persona;
    let days = Some(persona.expiry_days).filter(|_| !persona.is_lasting());
    let days = days.map(|days| days.to_string()).unwrap_or_default();
    html! {
        form.settings method="post" action=(link::of("settings", &room.scope)) {
            (room.here.visit.csrf_field())
            h2 { (en::PERSONA) }
            (origin(true))
            (text(room, en::PERSONA_PROMPT, "system", &persona.system_prompt))
            (text(room, en::PERSONALITY, "personality", &persona.personality))
            div.row {
                label { (en::TEMPERATURE) input type="number" name="temperature" min="0" max="1" step="any" value=(persona.temperature); }
                label { (en::EXPIRY_DAYS) input type="number" name="days" min="1" max=(Persona::EXPIRY_DAYS.end()) value=(days) placeholder=(en::NEVER); }
            }
            div.actions {
                button name="what" value="persona" { (en::SAVE) }
                button.danger name="what" value="unassign" formnovalidate { (en::TAKE_AWAY) }
            }
            p.muted { (en::TAKE_AWAY_HELP) }
        }
    }
}

/// A text of the persona to be changed, and where all of it is, if it is too long for that.
fn text(room: &Room, label: &str, name: &str, text: &str) -> Markup {
    let control = html! { textarea name=(name) rows="4" dir="auto" { (text) } };
    html! {
        (field(label, text, LONGEST, &control))
        @if cut(text, LONGEST).1 {
            p.more { a href=(link::with("words", &room.scope, &[("what", name)])) { (en::AS_FILE) } }
        }
    }
}

async fn offer(room: &Room) -> Result<Markup, Failure> {
    // The store's own presets lie in the default conversation, which may be damaged.
    let (presets, failed) = match room.here.store()?.contexts().presets().await {
        Ok(presets) => (presets, None),
        Err(error) => (Preset::all_built_in(), Some(with_causes(&error))),
    };
    let active = || presets.iter().filter(|preset| preset.is_active);
    let options = fitting(BESIDE, active(), |preset| {
        html! { option value=(preset.id) { (one_line(&preset.name)) } }
    });
    let described = fitting(BESIDE, active(), |preset| {
        html! {
            div { dt { bdi { (one_line(&preset.name)) } } dd dir="auto" { (brief(&preset.description, BRIEF)) } }
        }
    });
    let configured = &room.here.app.house.config().language_model.system_prompt;
    let whole = link::with("words", &room.scope, &[("what", "system")]);
    Ok(html! {
        form.settings method="post" action=(link::of("settings", &room.scope)) {
            (room.here.visit.csrf_field())
            h2 { (en::PERSONA) }
            p { (en::NO_PERSONA) }
            details { summary { (en::SHOW_TEXT) } div.quote { (beginning(&room.scope, configured, SHOWN, Some(&whole))) } }
            @if let Some(failed) = &failed { p.failure { (failed) } }
            label { (en::PRESET) select name="preset" {
                option value="" { (en::OWN_WORDS) }
                @for option in &options.shown { (option) }
                @if options.left > 0 { option disabled { (en::and_more(options.left)) } }
            } }
            details {
                summary { (en::PRESETS_EXPLAINED) }
                dl.facts { @for preset in &described.shown { (preset) } }
                @if described.left > 0 { p.muted { (en::and_more(described.left)) } }
            }
            label { (en::PERSONA_WORDS) textarea name="system" rows="3" dir="auto" {} }
            label { (en::EXPIRY_DAYS) input type="number" name="days" min="1" max=(Persona::EXPIRY_DAYS.end()) placeholder=(en::NEVER); }
            button name="what" value="assign" { (en::ASSIGN) }
        }
    })
}

/// Gives the conversation the chosen persona.
pub(super) async fn assign(room: &Room, change: &Change) -> Result<(), Failure> {
    let own = change.system.as_deref().map(str::trim).filter(|own| !own.is_empty());
    let persona = match (change.preset.as_str(), own) {
        ("", None) => return Err(Failure::wrong(en::NO_PERSONA_CHOSEN, en::CHOOSE_PERSONA)),
        ("", Some(own)) => (Persona::new(own), None),
        (_, Some(_)) => return Err(Failure::wrong(en::TWO_PERSONAS, en::CHOOSE_PERSONA)),
        (preset, None) => {
            let presets = room.here.store()?;
            let preset = presets.contexts().preset(preset).await?;
            (preset.persona, Some(preset.id))
        }
    };
    let expiry_days = Some(days(change)?);
    let change = PersonaChange { expiry_days, ..PersonaChange::default() };
    match persona::assign(&room.store, persona, &change, None).await? {
        true => Ok(()),
        false => Err(Failure::wrong(en::HAS_PERSONA, en::LOAD_AGAIN)),
    }
}

pub(super) async fn edit(room: &Room, change: &Change) -> Result<(), Failure> {
    let wrong = |_| Failure::wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER);
    let trimmed = |text: &Option<String>| text.as_ref().map(|text| text.trim().to_owned());
    let change = PersonaChange {
        system_prompt: trimmed(&change.system),
        personality: trimmed(&change.personality),
        temperature: Some(change.temperature.trim().parse().map_err(wrong)?),
        expiry_days: Some(days(change)?),
        ..PersonaChange::default()
    };
    Ok(persona::change_assigned(&room.store, change).await?)
}

/// After how many days it expires. Nothing means never, as far as there is such a thing.
fn days(change: &Change) -> Result<u32, Failure> {
    match change.days.trim() {
        "" => Ok(*Persona::EXPIRY_DAYS.end()),
        days => days.parse().map_err(|_| Failure::wrong(en::NOT_A_NUMBER, en::WHOLE_NUMBER)),
    }
}

pub(super) async fn unassign(room: &Room) -> Result<(), Failure> {
    Ok(persona::unassign(&room.store).await.map(drop)?)
}
