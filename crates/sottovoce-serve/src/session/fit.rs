//! Decides whether a request continues a session. People say the same words on many days, so words alone never show that
//! something was said before: the assistant's words between them do. Clients drop a session's oldest messages, and may add
//! some that were answered elsewhere.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::{RETRY, Said, Turn};

/// How a request continues a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It adds an utterance.
    Continues,
    /// It is another try to get an answer to the newest utterance, or brings the results of tools for it.
    Retries,
    /// It asks for another answer to the newest utterance, which has one.
    Regenerates,
    /// It adds an utterance in place of the turns from this index on.
    Replaces(usize),
}

/// What a request and a session have in common before the newest utterance. The greater fits better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Common {
    /// How many of the request's utterances the session has never heard, as they were answered elsewhere.
    unknown: Reverse<usize>,
    /// How many answers both have.
    answers: usize,
    /// How many utterances both have.
    heard: usize,
    /// How many answers differ.
    differing: Reverse<usize>,
}

impl Common {
    const NOTHING: Self = Self { unknown: Reverse(0), answers: 0, heard: 0, differing: Reverse(0) };
    /// A request that names the answer that it continues.
    const NAMED: Self = Self { answers: usize::MAX, ..Self::NOTHING };

    fn add(&mut self, turn: &Turn, answer: Option<u64>) {
        self.heard += 1;
        match answer {
            // Only what both have can be compared.
            Some(answer) if !turn.answers.is_empty() => match turn.has_answer(answer) {
                true => self.answers += 1,
                false => self.differing.0 += 1,
            },
            _ => {}
        }
    }

    /// Whether the answers tell of the same session, or nothing. A client may cut off the answer that it has just got.
    fn is_plausible(self, last: &Turn, now: Timestamp) -> bool {
        self.answers > 0 || self.differing.0 == 0 || last.is_fresh(now)
    }
}

impl Fit {
    /// Among sessions that have as much in common with a request: storing an utterance twice is the smaller harm.
    pub(crate) fn certainty(self) -> u8 {
        match self {
            Self::Retries => 2,
            Self::Continues => 1,
            Self::Regenerates | Self::Replaces(_) => 0,
        }
    }
}

impl Turn {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.duration_since(self.tried).as_secs().abs() <= RETRY
    }

    fn has_answer(&self, digest: u64) -> bool {
        self.answers.iter().any(|(known, _)| *known == digest)
    }
}

impl Said {
    /// The utterances before the newest, each with its answer.
    fn earlier(&self) -> impl DoubleEndedIterator<Item = (u64, Option<u64>)> + '_ {
        let count = self.users.len().saturating_sub(1);
        self.users.iter().copied().zip(self.answers.iter().copied()).take(count)
    }
}

/// What a request has in common with these turns at their ends, if one of them is then used up.
fn common(said: &Said, turns: &[Turn]) -> Option<Common> {
    let is_heard = |(user, _): &(u64, _)| turns.iter().any(|turn| turn.digest == *user);
    let unknown = said.earlier().filter(|earlier| !is_heard(earlier)).count();
    let mut common = Common { unknown: Reverse(unknown), ..Common::NOTHING };
    for ((user, answer), turn) in said.earlier().filter(is_heard).rev().zip(turns.iter().rev()) {
        if user != turn.digest {
            return None;
        }
        common.add(turn, answer);
    }
    Some(common)
}

/// What a request has in common with these turns, if all assistant's words in it are their answers.
fn common_answers(said: &Said, turns: &[Turn]) -> Option<Common> {
    let mut common = Common::NOTHING;
    for ((user, answer), turn) in said.earlier().rev().zip(turns.iter().rev()) {
        common.add(turn, answer);
        if user != turn.digest || common.differing.0 > 0 {
            return None;
        }
    }
    (common.answers > 0 && common.heard + 1 == said.users.len()).then_some(common)
}

/// How a request continues the session of these turns, if it does.
pub(super) fn fit(said: &Said, turns: &[Turn], now: Timestamp) -> Option<(Common, Fit)> {
    let (last, newest) = (turns.last()?, *said.users.last()?);
    let is_newest = last.digest == newest;
    let replaces = |at: usize| match at + 1 == turns.len() && is_newest {
        true => Fit::Regenerates,
        false => Fit::Replaces(at),
    };
    if let Some(previous) = said.previous {
        let at = turns.iter().rposition(|turn| turn.ids.contains(&previous))? + 1;
        let retries = is_newest && (said.is_tool_round || !last.is_answered && last.is_fresh(now));
        return Some((
            Common::NAMED,
            match () {
                () if at == turns.len() => Fit::Continues,
                () if at + 1 == turns.len() && retries => Fit::Retries,
                () => replaces(at),
            },
        ));
    }
    let is_first = said.users.len() == 1;
    let before = turns.split_last().map_or(&[][..], |(_, before)| before);
    // A session may begin with the words of another one, unless these still wait for their answer.
    let waits = !last.is_answered && last.is_fresh(now) && (!is_first || turns.len() == 1);
    let retries = || {
        let common = common(said, before).filter(|common| is_first || common.heard > 0)?;
        common.is_plausible(last, now).then_some((common, Fit::Retries))
    };
    let retries = (is_newest && (said.is_tool_round || waits)).then(retries).flatten();
    if said.is_tool_round || is_first {
        return retries;
    }
    let continues = common(said, turns)
        .filter(|common| common.heard > 0 && common.is_plausible(last, now))
        .map(|common| (common, Fit::Continues));
    let replaced = (1..turns.len())
        .rev()
        .find_map(|at| Some((common_answers(said, turns.get(..at)?)?, replaces(at))));
    let fits = [replaced, continues, retries].into_iter().flatten();
    fits.max_by_key(|(common, fit)| (*common, fit.certainty()))
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
    let newest = *said.users.last()?;
    let mut rest = all;
    let last = rest.last()?;
    let waits = said.is_tool_round || !last.is_answered && last.is_fresh(now);
    let is_retried = last.digest == newest && waits && !is_known(last.seq);
    let mut found: Vec<Turn> = rest.pop_if(|_| is_retried).into_iter().collect();
    let mut common = Common::NOTHING;
    for (user, answer) in said.earlier().rev() {
        let is_same = |turn: &Turn| turn.digest == user;
        let has_answer = |turn: &Turn| answer.is_some_and(|answer| turn.has_answer(answer));
        let at = rest.iter().rposition(|turn| is_same(turn) && has_answer(turn));
        let Some(at) = at.or_else(|| rest.iter().rposition(is_same)) else { continue };
        rest.truncate(at + 1);
        let Some(turn) = rest.pop() else { continue };
        common.add(&turn, answer);
        found.push(turn);
    }
    found.reverse();
    let is_plausible = common.is_plausible(found.last()?, now);
    is_plausible.then_some((found, if is_retried { Fit::Retries } else { Fit::Continues }))
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

    /// A request with these words, and with these answers after them.
    fn said(users: &[u64], answers: &[u64]) -> Said {
        let answers = (0..users.len()).map(|at| answers.get(at).copied()).collect();
        Said { users: users.to_vec(), answers, is_tool_round: false, name: None, previous: None }
    }

    fn fit_of(said: &Said, session: &[Turn]) -> Option<Fit> {
        fit(said, session, now()).map(|(_, fit)| fit)
    }

    fn fits(users: &[u64], session: &[u64]) -> Option<Fit> {
        fit_of(&said(users, &[]), &turns(session))
    }

    const CONTINUES: Option<Fit> = Some(Fit::Continues);

    #[test]
    fn a_session_is_known_by_what_was_said_in_it() {
        assert_eq!(fits(&[1, 2], &[1]), CONTINUES);
        assert_eq!(fits(&[1, 2, 3], &[1, 2]), CONTINUES);
        assert_eq!(fits(&[1, 2, 3], &[1, 4]), None);
        assert_eq!(fits(&[2], &[1]), None);
        assert_eq!(fits(&[1], &[]), None);
    }

    #[test]
    fn a_session_whose_oldest_messages_the_client_dropped_is_the_same() {
        assert_eq!(fits(&[3, 4, 5], &[1, 2, 3, 4]), CONTINUES);
        assert_eq!(fits(&[4, 5], &[1, 2, 3, 4]), CONTINUES);
        assert_eq!(fits(&[3, 4, 5], &[3, 4]), CONTINUES);
    }

    #[test]
    fn what_was_answered_elsewhere_does_not_end_a_session() {
        let session = turns(&[1, 2]);
        let elsewhere = fit(&said(&[1, 2, 9, 8, 3], &[]), &session, now()).unwrap();
        assert_eq!(elsewhere.1, Fit::Continues);
        assert!(fit(&said(&[2, 3], &[]), &session, now()).unwrap().0 > elsewhere.0);
        let session = turns(&[1, 2, 3]);
        assert_eq!(aligned(&said(&[2, 9, 3], &[]), &session), [Some(1), None, Some(2)]);
    }

    #[test]
    fn words_that_still_wait_for_an_answer_are_tried_again_for_a_minute() {
        // The first words of a session may be those of the last one.
        assert_eq!(fits(&[1], &[1]), None);
        for users in [&[1][..], &[1, 2]] {
            let mut waiting = turns(users);
            waiting.last_mut().unwrap().is_answered = false;
            let again = said(users, &[]);
            assert_eq!(fit_of(&again, &waiting), Some(Fit::Retries));
            waiting.last_mut().unwrap().tried -= jiff::SignedDuration::from_secs(RETRY + 1);
            assert_eq!(fit_of(&again, &waiting), None, "it was said again");
        }
        let mut tools = said(&[1], &[]);
        tools.is_tool_round = true;
        assert_eq!(fit_of(&tools, &turns(&[1])), Some(Fit::Retries));
    }

    #[test]
    fn only_the_answers_of_the_session_itself_show_that_words_are_not_said_anew() {
        let mut session = turns(&[1, 2]);
        assert_eq!(fits(&[1, 2], &[1, 2]), None, "no answer is shown");
        assert_eq!(fit_of(&said(&[1, 2], &[77]), &session), None, "another day's answer");
        assert_eq!(fit_of(&said(&[1, 2], &[1000]), &session), Some(Fit::Regenerates));
        assert_eq!(fit_of(&said(&[9, 1, 2], &[9, 1000]), &session), None, "unknown words before");
        // The client may show any of the answers.
        session[0].answered(1007, 9, true);
        assert_eq!(fit_of(&said(&[1, 2], &[1000]), &session), Some(Fit::Regenerates));
        assert_eq!(fit_of(&said(&[1, 2], &[1007]), &session), Some(Fit::Regenerates));
    }

    #[test]
    fn an_edited_utterance_takes_the_place_of_what_followed() {
        let session = turns(&[1, 2, 3, 4]);
        let answers = [1000, 1001, 1002];
        assert_eq!(fit_of(&said(&[1, 2, 7], &answers[..2]), &session), Some(Fit::Replaces(2)));
        assert_eq!(fit_of(&said(&[1, 2, 3], &answers[..2]), &session), Some(Fit::Replaces(2)));
        assert_eq!(fit_of(&said(&[1, 2, 3, 7], &answers), &session), Some(Fit::Replaces(3)));
        assert_eq!(fit_of(&said(&[1, 2, 7], &[1000]), &session), Some(Fit::Replaces(2)));
        assert_eq!(fit_of(&said(&[1, 2, 7], &[]), &session), None);
        assert_eq!(fit_of(&said(&[1, 2, 7], &[1000, 77]), &session), None);
    }

    #[test]
    fn a_session_with_other_answers_is_another_one_unless_it_was_just_answered() {
        let mut session = turns(&[1]);
        let mut request = said(&[1, 2], &[77]);
        assert_eq!(fit_of(&request, &session), CONTINUES, "the client may have cut it off");
        session[0].tried -= jiff::SignedDuration::from_secs(RETRY + 1);
        assert_eq!(fit_of(&request, &session), None);
        request.answers[0] = Some(1000);
        assert_eq!(fit_of(&request, &session), CONTINUES);
        session[0].answers.clear();
        request.answers[0] = Some(77);
        assert_eq!(fit_of(&request, &session), CONTINUES, "there is nothing to compare");
    }

    #[test]
    fn the_same_words_twice_are_two_utterances() {
        let session = turns(&[7, 7]);
        // The client has dropped the first, and says it a third time.
        assert_eq!(fit_of(&said(&[7, 7], &[1001]), &session), CONTINUES);
        assert_eq!(fit_of(&said(&[7, 7], &[1000]), &session), Some(Fit::Regenerates));
        assert_eq!(fits(&[7, 7, 7], &[7, 7]), CONTINUES);
        // In another session.
        assert_eq!(fits(&[8, 7], &[1, 7]), None);
        // Every answer is the same one.
        let mut session = session;
        session[0].answers = vec![(5, 2)];
        session[1].answers = vec![(5, 4)];
        assert_eq!(fit_of(&said(&[7, 7], &[5]), &session), CONTINUES);
    }

    #[test]
    fn a_request_that_names_the_answer_before_it_continues_there() {
        let mut session = turns(&[1, 2]);
        session[0].ids.push(50);
        session[1].ids.push(51);
        let mut request = said(&[3], &[]);
        request.previous = Some(51);
        assert_eq!(fit_of(&request, &session), CONTINUES);
        request.previous = Some(50);
        assert_eq!(fit_of(&request, &session), Some(Fit::Replaces(1)));
        request.users = vec![2];
        assert_eq!(fit_of(&request, &session), Some(Fit::Regenerates));
        request.previous = Some(52);
        assert_eq!(fit_of(&request, &session), None);
    }

    #[test]
    fn a_forgotten_session_is_found_again_among_what_is_stored() {
        let recover = |said: &Said, turns: Vec<Turn>, known: u64| {
            let (found, fit) = recover(said, turns, now(), |seq| seq == known)?;
            Some((found.iter().map(|turn| turn.seq).collect::<Vec<_>>(), fit))
        };
        let found = Some((vec![3, 7], Fit::Continues));
        assert_eq!(recover(&said(&[2, 4, 5], &[]), turns(&[1, 2, 3, 4]), 0), found);
        assert_eq!(recover(&said(&[5], &[]), turns(&[1, 2]), 0), None);
        assert_eq!(recover(&said(&[8, 9], &[]), turns(&[1, 2]), 0), None);
        // The same words on two days are told apart by their answers.
        let first = Some((vec![1], Fit::Continues));
        assert_eq!(recover(&said(&[2, 5], &[1000]), turns(&[2, 2]), 0), first);
        let mut old = turns(&[2]);
        old[0].tried -= jiff::SignedDuration::from_secs(RETRY + 1);
        assert_eq!(recover(&said(&[2, 5], &[77]), old, 0), None);
        // Answered, so it is said again.
        assert_eq!(recover(&said(&[2], &[]), turns(&[1, 2]), 0), None);
        let waiting = || {
            let mut waiting = turns(&[1, 2]);
            waiting[1].is_answered = false;
            waiting
        };
        assert_eq!(recover(&said(&[2], &[]), waiting(), 0), Some((vec![3], Fit::Retries)));
        assert_eq!(recover(&said(&[2], &[]), waiting(), 3), None, "of another session");
    }
}
