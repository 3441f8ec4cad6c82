//! Finding an id by its prefix.

/// How many ids to suggest for an unknown one.
const SUGGESTED: usize = 3;

/// The only id with this prefix, if there is exactly one.
pub(crate) fn only<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut beginning = known.filter(|known| known.starts_with(id));
    match (beginning.next(), beginning.next()) {
        (Some(only), None) if !id.is_empty() => Some(only),
        _ => None,
    }
}

/// The most similar ids: first those with the longest common prefix, then those with the fewest differences.
pub(crate) fn nearest<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let likeness = |known: &str| {
        let common = known.bytes().zip(id.bytes()).take_while(|(a, b)| a == b).count();
        let alike = known.bytes().zip(id.bytes()).filter(|(a, b)| a == b).count();
        std::cmp::Reverse((common, alike))
    };
    let mut ids: Vec<&str> = known.collect();
    ids.sort_by_key(|known| likeness(known));
    ids.into_iter().take(SUGGESTED).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["0a11", "0a2f", "77aa", "9b00"];

    #[test]
    fn the_most_likely_ids_are_suggested_first() {
        assert_eq!(nearest("0a21", KNOWN.into_iter()), ["0a2f", "0a11", "77aa"]);
        assert!(nearest("x", std::iter::empty()).is_empty());
    }

    #[test]
    fn a_beginning_is_enough_if_only_one_id_has_it() {
        let meant = |id| only(id, KNOWN.into_iter());
        assert_eq!(
            (meant("7"), meant("0a1"), meant("9b00")),
            (Some("77aa"), Some("0a11"), Some("9b00"))
        );
        for vague in ["", "0a", "0", "9b000", "x"] {
            assert_eq!(meant(vague), None, "{vague}");
        }
    }
}
