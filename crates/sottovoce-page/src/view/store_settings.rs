//! The settings of the store, each with where it comes from.

use maud::{Markup, html};
use sottovoce::config::Setting;

use crate::english as en;
use crate::failure::Failure;
use crate::html::{Place, Shell, brief, layout, one_line};
use crate::room::Here;

/// The most bytes of a value.
const VALUE: usize = 400;

pub(crate) async fn show(here: Here) -> Result<Markup, Failure> {
    let config = here.app.house.config();
    let mut sections: Vec<(&str, Vec<&Setting>)> = Vec::new();
    for setting in config.settings() {
        let section = setting.key.split('.').next().unwrap_or_default();
        match sections.last_mut() {
            Some((last, settings)) if *last == section => settings.push(setting),
            _ => sections.push((section, vec![setting])),
        }
    }
    let own = config.own_file().map(|file| file.display().to_string()).unwrap_or_default();
    let main = html! {
        h1 { (en::SETTINGS) }
        p { (en::STORE_SETTINGS_INTRO) " " code { (own) } }
        @for (section, settings) in &sections {
            h2 { (section) }
            div.wide tabindex="0" role="region" aria-label=(section) {
                table {
                    thead { tr { th scope="col" { (en::SETTING) } th scope="col" { (en::VALUE) } th scope="col" { (en::ORIGIN) } } }
                    tbody {
                        @for setting in settings {
                            tr.set[setting.origin != "default"] {
                                th scope="row" { code { (setting.key) } }
                                td dir="auto" { (brief(&value(setting), VALUE)) }
                                td.origin { (if setting.origin == "default" { en::DEFAULT.to_owned() } else { one_line(&setting.origin) }) }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(layout(&here.visit, &Shell::at(Place::Settings, en::SETTINGS), &main))
}

fn value(setting: &Setting) -> String {
    match &setting.value {
        serde_json::Value::Null => en::NOT_SET.to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
