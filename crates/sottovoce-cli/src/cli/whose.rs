//! Whose conversation a command is about, as people write it.

use sottovoce::Scope;

use crate::exit::Failure;

/// How many letters a kind may differ in to be taken for one that is misspelt.
const SLIPS: usize = 1;

/// The kinds of scopes: how each is written, and what people write instead.
const KINDS: [(&str, &str, &[&str]); 3] = [
    ("dm", "dm/USER", &["dm", "dms", "user", "users", "direct"]),
    ("guild", "guild/GUILD/CHANNEL/USER", &["guild", "guilds", "server", "servers"]),
    ("named", "named/NAME", &["named", "name", "room", "rooms", "conversation", "conversations"]),
];

/// The guild that the rooms of a home are channels of.
const HOME: &str = "home";

/// The scope of a text. A bare word that is no kind of scope is the name of a conversation.
pub(crate) fn scope(text: &str) -> Result<Scope, String> {
    if let Ok(scope) = text.parse() {
        return Ok(scope);
    }
    let Some((kind, rest)) = text.split_once('/') else { return bare(text) };
    let meant = match near(kind) {
        Some((kind, form)) => {
            let exact = format!("{kind}/{rest}").parse::<Scope>().ok();
            exact.or_else(|| build(kind, rest)).map_or(form.to_owned(), |scope| scope.to_string())
        }
        None => named(text).map_or("named/NAME".to_owned(), |scope| scope.to_string()),
    };
    Err(format!("it is not a scope; did you mean {meant}?"))
}

/// The scope of somebody, somewhere, at home.
pub(crate) fn at_home(
    user: Option<String>,
    room: Option<String>,
) -> Result<Option<Scope>, Failure> {
    let scope = match (user, room) {
        (None, None) => return Ok(None),
        (Some(user), None) => Scope::Dm { user },
        (None, Some(id)) => Scope::Named { id },
        (Some(user), Some(channel)) => Scope::Guild { guild: HOME.to_owned(), channel, user },
    };
    scope.folder()?;
    Ok(Some(scope))
}

fn bare(word: &str) -> Result<Scope, String> {
    let lower = word.to_lowercase();
    if strsim::damerau_levenshtein(&lower, "default") <= SLIPS {
        return Err("it is not a scope; did you mean default?".to_owned());
    }
    match KINDS.iter().find(|(kind, _, others)| lower == *kind || others.contains(&&*lower)) {
        Some((_, form, _)) => Err(format!("it is not a scope; did you mean {form}?")),
        None => {
            named(word).ok_or_else(|| "a name is 1 to 200 bytes without line breaks".to_owned())
        }
    }
}

/// The conversation of a name, in which what a scope's text needs escaped may be so or not.
fn named(name: &str) -> Option<Scope> {
    format!("named/{name}").parse().ok().or_else(|| build("named", name))
}

/// The kind that is meant, and its form.
fn near(kind: &str) -> Option<(&'static str, &'static str)> {
    let lower = kind.to_lowercase();
    let is_meant = |(kind, _, others): &&(&str, &str, &[&str])| {
        others.contains(&&*lower)
            || (kind.len() > 2 && strsim::damerau_levenshtein(kind, &lower) <= SLIPS)
    };
    KINDS.iter().find(is_meant).map(|(kind, form, _)| (*kind, *form))
}

/// The scope of ids that are not escaped.
fn build(kind: &str, rest: &str) -> Option<Scope> {
    let ids: Vec<String> = rest.split('/').map(str::to_owned).collect();
    let scope = match (kind, ids.as_slice()) {
        ("dm", _) => Scope::Dm { user: rest.to_owned() },
        ("named", _) => Scope::Named { id: rest.to_owned() },
        ("guild", [guild, channel]) => {
            let (guild, channel) = (guild.clone(), channel.clone());
            Scope::Guild { guild, channel, user: "USER".to_owned() }
        }
        ("guild", [guild, channel, user]) => {
            Scope::Guild { guild: guild.clone(), channel: channel.clone(), user: user.clone() }
        }
        _ => return None,
    };
    scope.folder().is_ok().then_some(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_is_the_name_of_a_conversation() {
        for (text, written) in [
            ("kitchen", "named/kitchen"),
            ("living room", "named/living%20room"),
            ("living%20room", "named/living%20room"),
            ("42", "named/42"),
            ("100%", "named/100%25"),
            ("default", "default"),
            ("dm/42", "dm/42"),
        ] {
            assert_eq!(scope(text).unwrap().to_string(), written, "{text}");
        }
    }

    #[test]
    fn what_is_nearly_a_scope_gets_the_one_that_was_meant() {
        for (text, meant) in [
            ("dms/42", "dm/42"),
            ("Guild/1/2", "guild/1/2/USER"),
            ("Guild/1/2/3", "guild/1/2/3"),
            ("guild/1", "guild/GUILD/CHANNEL/USER"),
            ("guid/1/2/3", "guild/1/2/3"),
            ("Named/kitchen", "named/kitchen"),
            ("dm/Bob Smith", "dm/Bob%20Smith"),
            ("dm/1/2", "dm/1%2f2"),
            ("Default", "default"),
            ("defualt", "default"),
            ("DM", "dm/USER"),
            ("guild", "guild/GUILD/CHANNEL/USER"),
            ("kitchen/42", "named/kitchen%2f42"),
            ("dm/", "dm/USER"),
        ] {
            let refused = scope(text).unwrap_err();
            assert!(refused.ends_with(&format!("did you mean {meant}?")), "{text}: {refused}");
        }
        for text in ["", "a\nb", &"x".repeat(300)] {
            assert!(scope(text).is_err(), "{text:?}");
        }
    }
}
