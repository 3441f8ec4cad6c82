//! The file names of the Discord bot: `{user}.json` and `{user}_{persona}.json`.

/// The user and the persona of a file. Discord's user ids are numbers; if the part before the `_` is not a number, the
/// whole name is the user's.
pub(super) fn parts(stem: &str) -> (&str, Option<&str>) {
    match stem.split_once('_') {
        Some((user, persona))
            if !user.is_empty()
                && !persona.is_empty()
                && user.bytes().all(|b| b.is_ascii_digit()) =>
        {
            (user, Some(persona))
        }
        _ => (stem, None),
    }
}

/// The name without its ending; `None` for other files.
pub(super) fn stem(name: &[u8]) -> Option<&[u8]> {
    name.strip_suffix(b".json").filter(|stem| !stem.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persona_stands_behind_a_number_alone() {
        assert_eq!(parts("13"), ("13", None));
        assert_eq!(parts("13_emma"), ("13", Some("emma")));
        assert_eq!(parts("13_emma_2"), ("13", Some("emma_2")));
        for whole in ["anna_emma", "13_", "_emma", "13a_emma", "١_emma", "-1_emma", ""] {
            assert_eq!(parts(whole), (whole, None));
        }
    }

    #[test]
    fn only_json_is_a_conversation() {
        assert_eq!(stem(b"13.json"), Some(&b"13"[..]));
        for other in [&b".json"[..], b"13.json.tmp", b"13", b"13.JSON"] {
            assert_eq!(stem(other), None);
        }
    }
}
