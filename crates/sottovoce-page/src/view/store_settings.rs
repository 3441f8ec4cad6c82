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
                                th scope="row" { code { (setting.key) } p.muted { (plain(setting.meaning())) } }
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

/// The words of a line of Markdown.
fn plain(markdown: &str) -> String {
    let mut text = markdown.replace('`', "");
    while let Some((before, rest)) = text.split_once('[')
        && let Some((words, rest)) = rest.split_once("](")
        && let Some((_, after)) = rest.split_once(')')
    {
        text = format!("{before}{words}{after}");
    }
    text
}

fn value(setting: &Setting) -> String {
    match &setting.value {
        serde_json::Value::Null => en::NOT_SET.to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_link_only_its_words_are_shown() {
        assert_eq!(
            plain("With `null`, [`up`](up.md) leaves [it](#x) out."),
            "With null, up leaves it out."
        );
        assert_eq!(plain("lines [such as"), "lines [such as");
    }
}
