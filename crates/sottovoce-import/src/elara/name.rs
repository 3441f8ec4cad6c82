//! The file names of Elara: `{yyyyMMddTHHmmssfffZ}_{counter}_{role}.json`.

/// Whether Elara would read a file of this name.
pub(super) fn is_record(name: &[u8]) -> bool {
    let ending = name.len().checked_sub(5).and_then(|at| name.get(at..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(b".json"))
}

/// The counter within one run of Elara. The rest of the name is ignored: the record has the role and the time, and the
/// date in the name may be of another calendar.
pub(super) fn counter(name: &str) -> Option<u64> {
    let digits = name.split('_').nth(1)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_a_number_of_any_length() {
        assert_eq!(counter("20250824T053102123Z_0001_user.json"), Some(1));
        assert_eq!(counter("20250824T053102123Z_10000_user.json"), Some(10_000));
        assert_eq!(counter("14470301T053102123Z_0042_assistant.json"), Some(42));
        for other in ["notes.json", "a_b_c.json", "a_-1_c.json", "a__c.json", "a_١_c.json"] {
            assert_eq!(counter(other), None, "{other}");
        }
        assert_eq!(counter("a_99999999999999999999999_c.json"), None);
    }

    #[test]
    fn whatever_ends_in_json_is_a_record() {
        assert!(is_record(b"x.json") && is_record(b".JSON") && is_record(b"\xff.json"));
        assert!(!is_record(b"json") && !is_record(b"x.json.bak") && !is_record(b""));
    }
}
