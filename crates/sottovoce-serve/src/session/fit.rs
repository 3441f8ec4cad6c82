//! Decides whether a request continues a session. Clients drop a session's oldest messages, and may add some that
//! were answered elsewhere.

use jiff::Timestamp;

use super::{RETRY, Said, Turn};

/// How a request continues a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It adds an utterance.
    Continues(Common),
    /// It asks again for an answer to the newest utterance, or brings the results of tools for it.
    Repeats(Common),
}

/// What a request and a session have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Common {
    /// How many utterances both have.
    heard: usize,
    /// How many of the request's utterances the session has never heard, as they were answered elsewhere.
    unknown: usize,
}

impl Common {
    /// A request that names the answer that it continues.
    pub(super) const NAMED: Self = Self { heard: usize::MAX, unknown: 0 };
}

impl Fit {
    /// What fits best: nothing unknown, then the most in common.
    pub(crate) fn strength(self) -> impl Ord {
        let (Self::Continues(common) | Self::Repeats(common)) = self;
        (std::cmp::Reverse(common.unknown), common.heard)
    }
}

/// What a request and a session have in common at their ends, if one of them is then used up.
fn common(users: &[u64], turns: &[Turn]) -> Option<Common> {
    let is_heard = |user: &&u64| turns.iter().any(|turn| turn.digest == **user);
    let mut common =
        Common { heard: 0, unknown: users.iter().filter(|user| !is_heard(user)).count() };
    for (user, turn) in users.iter().filter(is_heard).rev().zip(turns.iter().rev()) {
        if *user != turn.digest {
            return None;
        }
        common.heard += 1;
    }
    (common.heard > 0).then_some(common)
}

pub(super) fn fit(said: &Said, turns: &[Turn], now: Timestamp) -> Option<Fit> {
    let (last, newest) = (turns.last()?, said.users.last()?);
    let repeats = common(&said.users, turns).filter(|_| last.digest == *newest);
    if said.is_tool_round {
        return repeats.map(Fit::Repeats);
    }
    let (_, earlier) = said.users.split_last()?;
    if earlier.is_empty() {
        // A session may begin with the words of another one, unless these still wait for their answer.
        let age = now.duration_since(last.at).as_secs().abs();
        let waits = turns.len() == 1 && !last.is_answered && age <= RETRY;
        return repeats.filter(|_| waits).map(Fit::Repeats);
    }
    let continues = common(earlier, turns);
    // The same words in another session are not the same utterance.
    let repeats = repeats.filter(|common| common.heard > 1);
    match (continues, repeats) {
        (Some(continues), Some(repeats)) => {
            // Somebody said the same twice. The answer that stands between tells which it is.
            let between = said.answers.get(earlier.len() - 1).copied().flatten();
            let before = turns.len().checked_sub(2).and_then(|at| turns.get(at));
            let is_before = before.is_some_and(|turn| turn.answer == between);
            let is_repeated = between.is_some() && last.answer != between && is_before;
            Some(if is_repeated { Fit::Repeats(repeats) } else { Fit::Continues(continues) })
        }
        (Some(common), None) => Some(Fit::Continues(common)),
        (None, Some(common)) => Some(Fit::Repeats(common)),
        (None, None) => None,
    }
}

/// For each utterance of a request, its turn. The newest is the session's last.
pub(super) fn aligned(said: &Said, turns: &[Turn]) -> Vec<Option<usize>> {
    let mut aligned = vec![None; said.users.len()];
    let mut before = turns.len();
    for (user, found) in said.users.iter().zip(&mut aligned).rev() {
        let at =
            turns.get(..before).and_then(|turns| turns.iter().rposition(|t| t.digest == *user));
        if let Some(at) = at {
            *found = Some(at);
            before = at;
        }
    }
    aligned
}

/// The turns of a request that are among all stored ones. Turns of other sessions may lie between them.
pub(super) fn recover(
    said: &Said,
    all: Vec<Turn>,
    now: Timestamp,
    is_known: impl Fn(u64) -> bool,
) -> Option<(Vec<Turn>, Fit)> {
    let (newest, earlier) = said.users.split_last()?;
    let is_newest = all.last().is_some_and(|turn| turn.digest == *newest && !is_known(turn.seq));
    let age = |turn: &Turn| now.duration_since(turn.at).as_secs().abs();
    let waits = all.last().is_some_and(|turn| !turn.is_answered && age(turn) <= RETRY);
    let repeats = is_newest && (said.is_tool_round || waits);
    let wanted = if repeats { &said.users[..] } else { earlier };
    let mut found = Vec::new();
    let mut rest = all;
    for user in wanted.iter().rev() {
        let Some(at) = rest.iter().rposition(|turn| turn.digest == *user) else { continue };
        rest.truncate(at + 1);
        found.extend(rest.pop());
    }
    found.reverse();
    let common = Common { heard: found.len(), unknown: wanted.len() - found.len() };
    let fit = if repeats { Fit::Repeats(common) } else { Fit::Continues(common) };
    (common.heard > 0).then_some((found, fit))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sottovoce::{ChatMessage, ChatRole, Scope, StoredMessage};

    use super::*;

    fn now() -> Timestamp {
        "2025-08-24T16:36:25Z".parse().unwrap()
    }

    /// A session in which these words were said and answered.
    fn turns(words: &[u64]) -> Vec<Turn> {
        let scope = Arc::new(Scope::Default);
        let turn = |(at, digest): (usize, &u64)| {
            let message = ChatMessage::at(ChatRole::User, "words", now());
            let seq = at as u64 * 2 + 1;
            let stored = StoredMessage::from_parts(&scope, seq, now(), message).unwrap();
            let mut turn = Turn::new(*digest, &Arc::new(stored));
            turn.answered(1000 + at as u64, seq + 1, true);
            turn
        };
        words.iter().enumerate().map(turn).collect()
    }

    fn said(users: &[u64]) -> Said {
        let answers = vec![None; users.len()];
        Said { users: users.to_vec(), answers, is_tool_round: false, name: None, previous: None }
    }

    fn fits(users: &[u64], session: &[u64]) -> Option<Fit> {
        fit(&said(users), &turns(session), now())
    }

    fn continues(heard: usize) -> Fit {
        Fit::Continues(Common { heard, unknown: 0 })
    }

    fn repeats(heard: usize) -> Fit {
        Fit::Repeats(Common { heard, unknown: 0 })
    }

    #[test]
    fn a_session_is_known_by_what_was_said_in_it() {
        assert_eq!(fits(&[1, 2], &[1]), Some(continues(1)));
        assert_eq!(fits(&[1, 2, 3], &[1, 2]), Some(continues(2)));
        assert_eq!(fits(&[1, 2, 3], &[1, 4]), None);
        assert_eq!(fits(&[2], &[1]), None);
        assert_eq!(fits(&[1], &[]), None);
    }

    #[test]
    fn a_session_whose_oldest_messages_the_client_dropped_is_the_same() {
        assert_eq!(fits(&[3, 4, 5], &[1, 2, 3, 4]), Some(continues(2)));
        assert_eq!(fits(&[4, 5], &[1, 2, 3, 4]), Some(continues(1)));
        assert_eq!(fits(&[3, 4, 5], &[3, 4]), Some(continues(2)));
    }

    #[test]
    fn what_was_answered_elsewhere_does_not_end_a_session() {
        let two_unknown = Fit::Continues(Common { heard: 2, unknown: 2 });
        assert_eq!(fits(&[1, 2, 9, 8, 3], &[1, 2]), Some(two_unknown));
        assert!(continues(1).strength() > two_unknown.strength());
        let session = turns(&[1, 2, 3]);
        assert_eq!(aligned(&said(&[2, 9, 3]), &session), [Some(1), None, Some(2)]);
    }

    #[test]
    fn a_request_that_is_sent_again_adds_nothing() {
        assert_eq!(fits(&[1, 2], &[1, 2]), Some(repeats(2)));
        // The first words of a session may be those of the last one.
        assert_eq!(fits(&[1], &[1]), None);
        let mut waiting = turns(&[1]);
        waiting[0].is_answered = false;
        assert_eq!(fit(&said(&[1]), &waiting, now()), Some(repeats(1)));
        let later = now() + jiff::SignedDuration::from_secs(RETRY + 1);
        assert_eq!(fit(&said(&[1]), &waiting, later), None);
        let mut tools = said(&[1]);
        tools.is_tool_round = true;
        assert_eq!(fit(&tools, &turns(&[1]), now()), Some(repeats(1)));
    }

    #[test]
    fn the_same_words_twice_are_two_utterances() {
        let session = turns(&[7, 7]);
        let mut request = said(&[7, 7]);
        request.answers[0] = Some(1001);
        // The client has dropped the first, and says it a third time.
        assert_eq!(fit(&request, &session, now()), Some(continues(1)));
        request.answers[0] = Some(1000);
        assert_eq!(fit(&request, &session, now()), Some(repeats(2)));
        assert_eq!(fits(&[7, 7, 7], &[7, 7]), Some(continues(2)));
        // In another session.
        assert_eq!(fits(&[8, 7], &[1, 7]), None);
    }

    #[test]
    fn a_forgotten_session_is_found_again_among_what_is_stored() {
        let (found, fit) =
            recover(&said(&[2, 4, 5]), turns(&[1, 2, 3, 4]), now(), |_| false).unwrap();
        let seqs: Vec<u64> = found.iter().map(|turn| turn.seq).collect();
        assert_eq!((seqs, fit), (vec![3, 7], continues(2)));
        assert!(recover(&said(&[5]), turns(&[1, 2]), now(), |_| false).is_none());
        assert!(recover(&said(&[8, 9]), turns(&[1, 2]), now(), |_| false).is_none());
        // Answered, so it is said again.
        assert!(recover(&said(&[2]), turns(&[1, 2]), now(), |_| false).is_none());
        let mut waiting = turns(&[1, 2]);
        waiting[1].is_answered = false;
        assert_eq!(recover(&said(&[2]), waiting, now(), |_| false).unwrap().1, repeats(1));
        let mut elsewhere = turns(&[1, 2]);
        elsewhere[1].is_answered = false;
        assert!(recover(&said(&[2]), elsewhere, now(), |seq| seq == 3).is_none());
    }
}
