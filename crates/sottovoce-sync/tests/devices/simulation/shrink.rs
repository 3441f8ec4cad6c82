//! Finds fewer actions that fail too

/// Leaves out as many actions as possible, halves first, until a pass leaves out none.
pub(crate) fn shrink<A: Clone>(
    mut actions: Vec<A>,
    mut failure: String,
    fails: impl Fn(&[A]) -> Option<String>,
) -> (Vec<A>, String) {
    let (mut length, mut before) = (actions.len() / 2, actions.len());
    while length > 0 {
        let mut at = 0;
        while at < actions.len() {
            let mut fewer = actions.clone();
            fewer.drain(at..(at + length).min(actions.len()));
            match fails(&fewer) {
                Some(now) => (actions, failure) = (fewer, now),
                None => at += length,
            }
        }
        length /= 2;
        if length == 0 && actions.len() < before {
            (length, before) = (actions.len() / 2, actions.len());
        }
    }
    (actions, failure)
}
