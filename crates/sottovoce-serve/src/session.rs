//! Clients' sessions: which one a request continues. Clients send a session's messages with every request and give it no
//! name, so it is recognised by digests of what was said and answered in it. Kept in memory only.

mod fit;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use jiff::Timestamp;
use sottovoce::context::Context;
use sottovoce::model::without_thoughts;
use sottovoce::{ChatRole, StoredMessage};

pub(crate) use fit::Fit;

use crate::request::ChatRequest;

/// The most sessions of one conversation that are remembered.
const SESSIONS: usize = 64;
/// The most turns of one session that are remembered.
const TURNS: usize = 512;
/// How many seconds after a try that got no answer the same words are another try.
const RETRY: i64 = 60;

/// The sessions of one conversation.
#[derive(Default)]
pub(crate) struct Sessions {
    digests: RandomState,
    next: u64,
    /// The one that was used last is the last.
    sessions: VecDeque<Session>,
}

/// One session of a client.
pub(crate) struct Session {
    pub(crate) id: u64,
    /// What the client calls it, if it says so.
    name: Option<String>,
    /// The number of its first utterance. What was said before that is added to its prompts.
    pub(crate) first: u64,
    pub(crate) turns: Vec<Turn>,
}

/// An utterance of a session, and what followed it.
pub(crate) struct Turn {
    digest: u64,
    /// The utterance's number.
    pub(crate) seq: u64,
    /// When the newest try to answer it began or ended.
    pub(crate) tried: Timestamp,
    /// The utterance, as long as it is the newest of the session.
    pub(crate) utterance: Option<Arc<StoredMessage>>,
    /// The numbers of its calls, results and answers.
    pub(crate) stored: Vec<u64>,
    /// The digests and numbers of its answers: of each one that was stored, since a client may show any of them.
    answers: Vec<(u64, u64)>,
    /// The digests of the ids that the server gave to its answers.
    ids: Vec<u64>,
    /// Messages that prompts hide once a whole answer is stored, because this turn replaces them.
    pub(crate) replaced: Vec<u64>,
    /// Whether a whole answer is stored.
    is_answered: bool,
    /// How many of the client's lines after the utterance are stored.
    pub(crate) recorded: usize,
    /// The current time as the client gave it with this utterance.
    pub(crate) time: Option<String>,
    /// What was recalled for it.
    pub(crate) recalled: Context,
}

/// What a request says, as digests.
pub(crate) struct Said {
    /// The users' lines.
    pub(crate) users: Vec<u64>,
    /// For each of these, the last text of the assistant before the next.
    answers: Vec<Option<u64>>,
    /// Whether tools were called since the newest of them.
    pub(crate) is_tool_round: bool,
    name: Option<String>,
    /// The id of the answer that it continues.
    previous: Option<u64>,
}

impl Sessions {
    /// The digests of a request.
    pub(crate) fn said(&self, request: &ChatRequest) -> Said {
        let mut said = Said {
            users: Vec::new(),
            answers: Vec::new(),
            is_tool_round: request.lines.last().is_some_and(|line| line.speaker == ChatRole::Tool),
            name: request.session.clone(),
            previous: request.previous.as_deref().map(|id| self.digest(id)),
        };
        for line in &request.lines {
            match line.speaker {
                ChatRole::User => {
                    said.users.push(self.digest(&line.text));
                    said.answers.push(None);
                }
                ChatRole::Assistant if !line.text.trim().is_empty() => {
                    if let Some(answer) = said.answers.last_mut() {
                        *answer = Some(self.answer_digest(&line.text));
                    }
                }
                _ => {}
            }
        }
        said
    }

    /// The digest of words. White space around them does not count, because some clients trim it.
    pub(crate) fn digest(&self, words: &str) -> u64 {
        self.digests.hash_one(words.trim())
    }

    /// The digest of an answer. Thoughts in it do not count, because some clients return them and others do not.
    pub(crate) fn answer_digest(&self, words: &str) -> u64 {
        self.digest(&without_thoughts(words))
    }

    /// The session that fits a request best, and how. It becomes the one that was used last.
    pub(crate) fn find(&mut self, said: &Said, now: Timestamp) -> Option<(u64, Fit)> {
        let named = self.sessions.iter().enumerate().filter(|(_, known)| known.name == said.name);
        let fits =
            named.filter_map(|(at, session)| Some((fit::fit(said, &session.turns, now)?, at)));
        // Of equal fits, the one that was used last.
        let ((_, fit), at) = fits.max_by_key(|((common, fit), _)| (*common, fit.certainty()))?;
        let session = self.sessions.remove(at)?;
        let id = session.id;
        self.sessions.push_back(session);
        Some((id, fit))
    }

    /// A session, if it is still remembered.
    pub(crate) fn session(&mut self, id: u64) -> Option<&mut Session> {
        self.sessions.iter_mut().rfind(|known| known.id == id)
    }

    /// Begins a session with these turns, whose first utterance has the number `first`. Returns its id.
    pub(crate) fn begin(&mut self, said: &Said, first: u64, turns: Vec<Turn>) -> u64 {
        self.next += 1;
        let session = Session { id: self.next, name: said.name.clone(), first, turns };
        if self.sessions.len() >= SESSIONS {
            self.sessions.pop_front();
        }
        self.sessions.push_back(session);
        self.next
    }

    /// The turn of an utterance in a session, if both are still remembered.
    pub(crate) fn turn(&mut self, session: u64, seq: u64) -> Option<&mut Turn> {
        self.session(session)?.turns.iter_mut().rfind(|turn| turn.seq == seq)
    }

    /// Rebuilds a session that is not remembered, from the newest stored messages: the turns of the request that
    /// are stored. Returns them with how the request continues them. An utterance of a remembered session is not repeated by
    /// a request that does not fit that session.
    pub(crate) fn recover(
        &self,
        said: &Said,
        stored: &[Arc<StoredMessage>],
        now: Timestamp,
    ) -> Option<(Vec<Turn>, Fit)> {
        let mut turns: Vec<Turn> = Vec::new();
        for message in stored {
            match (message.message.role, turns.last_mut()) {
                (ChatRole::User, _) => {
                    turns.push(Turn::new(self.digest(&message.message.content), message));
                }
                (ChatRole::Assistant | ChatRole::Tool, Some(turn)) => {
                    turn.stored.push(message.seq);
                    turn.tried = message.message.timestamp;
                    turn.recorded += 1;
                    if message.message.role == ChatRole::Assistant {
                        let is_whole = message.message.cut_off().is_none();
                        if message.message.tool_calls.is_empty() {
                            let digest = self.answer_digest(&message.message.content);
                            turn.answers.push((digest, message.seq));
                            turn.is_answered |= is_whole;
                        }
                    }
                }
                _ => {}
            }
        }
        let is_known = |seq: u64| {
            let mut turns = self.sessions.iter().flat_map(|session| &session.turns);
            turns.any(|turn| turn.seq == seq)
        };
        fit::recover(said, turns, now, is_known)
    }
}

impl Session {
    /// Adds a turn.
    pub(crate) fn push(&mut self, turn: Turn) {
        if self.turns.len() >= TURNS {
            self.turns.remove(0);
        }
        if let Some(before) = self.turns.last_mut() {
            before.utterance = None;
        }
        self.turns.push(turn);
    }

    /// For each of the request's utterances, the index of its turn. `None` for those that this session has not heard, as
    /// they were answered elsewhere.
    pub(crate) fn aligned(&self, said: &Said) -> Vec<Option<usize>> {
        fit::aligned(said, &self.turns)
    }
}

impl Turn {
    /// The turn of a stored utterance.
    pub(crate) fn new(digest: u64, utterance: &Arc<StoredMessage>) -> Self {
        Self {
            digest,
            seq: utterance.seq,
            tried: utterance.message.timestamp,
            utterance: Some(Arc::clone(utterance)),
            stored: Vec::new(),
            answers: Vec::new(),
            ids: Vec::new(),
            replaced: Vec::new(),
            is_answered: false,
            recorded: 0,
            time: None,
            recalled: Context::default(),
        }
    }

    /// Begins another answer to the utterance. Once it is whole, prompts hide what it replaces.
    pub(crate) fn begin_again(&mut self, is_tool_round: bool) {
        self.is_answered = false;
        if is_tool_round {
            self.replaced.extend(self.answers.iter().map(|(_, seq)| *seq));
        } else {
            self.replaced.extend(&self.stored);
            self.recorded = 0;
        }
    }

    /// Notes the end of a try, and the id that the server gave to the answer.
    pub(crate) fn tried(&mut self, now: Timestamp, id: Option<u64>) {
        self.tried = now;
        self.ids.extend(id);
    }

    /// Notes the answer that was stored last. Returns the messages that prompts hide from now on.
    pub(crate) fn answered(&mut self, digest: u64, seq: u64, is_whole: bool) -> Vec<u64> {
        self.stored.push(seq);
        self.answers.push((digest, seq));
        self.is_answered |= is_whole;
        if is_whole { std::mem::take(&mut self.replaced) } else { Vec::new() }
    }

    /// Its messages, and those that it replaces.
    pub(crate) fn seqs(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.seq).chain(self.stored.iter().chain(&self.replaced).copied())
    }
}
