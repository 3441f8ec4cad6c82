//! The current time at the end of a system prompt, as some clients put it there. It changes with every request, and the
//! model then reads everything behind it again.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Sentences about the current date or time at the very end of a text.
static TIME_LINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let subject = r"(?:the )?(?:current|today'?s|local) (?:local )?(?:date and time|datetime|date|time)|today|it|now|the (?:date|time)(?: now)?";
    let digits = r"[^\n.!?]{0,80}\d[^\n.!?]{0,60}(?:\.\d[^\n.!?]{0,20}){0,3}";
    Regex::new(&format!(r"(?i)(?:(?:^|[\n.!?] *|\s)(?:{subject})(?: is(?: now| currently)?|:){digits}(?:[.!]|\n|$)\s*)+$")).ok()
});

/// Where the sentences about the current time at the end of a system prompt begin, in bytes; `None` without any.
pub(crate) fn start(system: &str) -> Option<usize> {
    // The sentences are short, so only the end is looked at.
    let end = system.len().saturating_sub(400);
    let from = (end..system.len()).find(|at| system.is_char_boundary(*at))?;
    let found = TIME_LINE.as_ref()?.find(system.get(from..)?)?;
    let matched = found.as_str();
    // The end of the sentence before it stays.
    let skipped = matched.len() - matched.trim_start_matches(['.', '!', '?', ' ', '\n']).len();
    let start = from + found.start() + skipped;
    has_time(system.get(start..)?).then_some(start)
}

/// Whether a text names a time of day or a date.
fn has_time(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    digits >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(system: &str) -> Option<&str> {
        start(system).and_then(|at| system.get(at..))
    }

    #[test]
    fn the_time_at_the_end_is_found_as_clients_write_it() {
        for (before, time) in [
            (
                "You are a voice assistant.\n",
                "Current time is 09:26:57. Today's date is 2026-11-23.",
            ),
            (
                "You are a voice assistant.\n",
                "Current time is 09:26:57.\nToday's date is 2026-11-23.\n",
            ),
            ("Be brief. ", "The current date and time is 23 November 2026, 09:26."),
            ("Be brief.\n\n", "Current date: 2026-11-23"),
            ("Be brief.\n", "Current Time: 9:26 AM"),
            ("", "Today is Monday 23 November 2026."),
        ] {
            let system = format!("{before}{time}");
            assert_eq!(moved(&system), Some(time), "{system:?}");
        }
    }

    #[test]
    fn other_endings_stay_where_they_are() {
        for system in [
            "",
            "You are a voice assistant.",
            "Current time is 09:26:57. Answer briefly.",
            "If asked, say what the current time is.",
            "The time is unknown.",
            "Devices:\n- light.kitchen: on\n- sensor.clock: 09:26:57",
            "Wake the family at 06:30.",
        ] {
            assert_eq!(moved(system), None, "{system:?}");
        }
        let long = format!("{}é Current time is 09:26.", "é".repeat(300));
        assert_eq!(moved(&long), Some("Current time is 09:26."));
    }
}
