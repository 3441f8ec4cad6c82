//! Memory: seals a request's newest utterance, and adds to the request what was said before.

mod additions;
mod earlier;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sottovoce::context::Context;
use sottovoce::store::Profile;
use sottovoce::{ChatMessage, ChatRole, Error, Result, Source, StoredMessage};

use crate::hub::Hub;
use crate::open_scope::OpenScope;
use crate::receipt::{Entry, Receipt};
use crate::request::{ChatRequest, Line, spliced};
use crate::session::{Fit, Said, Sessions, Turn};
use crate::time_line;
use additions::Additions;
use earlier::Earlier;

/// How many stored messages are read to find a session that is not remembered.
const RECENT: usize = 256;
/// The metadata key of a tool's result: the function's name.
const TOOL: &str = "tool";

/// A request that is ready to be forwarded.
pub(crate) struct Prepared {
    pub(crate) body: Bytes,
    pub(crate) receipt: Receipt,
    /// The id of the client's session.
    pub(crate) session: u64,
    pub(crate) utterance: Arc<StoredMessage>,
}

/// A request of one conversation.
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a ChatRequest,
    pub(crate) body: &'a Bytes,
    /// The name of the client's key.
    pub(crate) client: &'a str,
}

/// A changed body, with the original, whose memory is counted until the model server has the changed one.
struct Spliced {
    changed: Vec<u8>,
    _original: Bytes,
}

impl AsRef<[u8]> for Spliced {
    fn as_ref(&self) -> &[u8] {
        &self.changed
    }
}

impl OpenScope {
    /// Seals the newest utterance, or finds it if it is sealed already, and adds to the request what was said before.
    ///
    /// # Errors
    /// Those of reading and writing the conversation. Nothing may be forwarded then.
    pub(crate) async fn prepare(self: &Arc<Self>, hub: &Hub, asked: Asked<'_>) -> Result<Prepared> {
        let begun = Instant::now();
        let request = asked.request;
        let settings = &hub.config().serve;
        let thread = request.session.clone().filter(|_| settings.threads);
        let mut sessions = self.sessions.lock().await;
        let said = sessions.said(request);
        let (session, repeated) = self.session(&mut sessions, &asked, &said, &thread).await?;
        self.record_tools(&mut sessions, session, request).await?;
        let known = sessions.session(session).ok_or(Error::ShuttingDown)?;
        let aligned = known.aligned(&said);
        let (first, newest) = (known.first, known.turns.len() - 1);
        let utterance = known.turns.get(newest).and_then(|turn| turn.utterance.clone());
        let utterance = utterance.ok_or(Error::ShuttingDown)?;

        let earlier = Earlier::of(self, thread.as_deref()).await?;
        let limit = request.window.map_or(usize::MAX, |window| window / 8);
        let limit = limit.min(settings.history_tokens);
        let (mut history, offered_before) = earlier.before(first, limit).await?;
        let mut offered: HashSet<u64> = seqs(&history).collect();
        history.messages.retain(|_| !request.has_tokens);
        for turn in aligned.iter().flatten().filter_map(|at| known.turns.get(*at)) {
            offered.extend(turn.seqs().chain(seqs(&turn.recalled)));
        }
        let mut failed = None;
        if !repeated {
            let found = earlier.recalled(&utterance, offered).await;
            let recalled = found.unwrap_or_else(|why| {
                failed = Some(why);
                Context::default()
            });
            if let Some(turn) = known.turns.get_mut(newest) {
                turn.recalled = recalled;
            }
        }
        if let Some(turn) = known.turns.get_mut(newest).filter(|turn| turn.time.is_none()) {
            turn.time = system_time(request).filter(|_| settings.move_time);
        }
        for turn in &mut known.turns {
            earlier.drop_forgotten(&mut turn.recalled);
        }

        let additions = Additions { history: &history, turns: &known.turns, aligned: &aligned };
        let (splices, tokens) = additions.splices(&asked, settings.move_time);
        let body = match splices.is_empty() {
            true => asked.body.clone(),
            false => Bytes::from_owner(Spliced {
                changed: spliced(asked.body, splices),
                _original: asked.body.clone(),
            }),
        };
        let newest = known.turns.get(newest);
        let receipt = Receipt {
            id: 0,
            at: self.store.clock().now().timestamp(),
            utterance: utterance.seq,
            session_since: first,
            repeated,
            time_moved: newest.is_some_and(|turn| turn.time.is_some()),
            history: Entry::list(&history),
            left_out: Entry::left_out(&offered_before, newest.map(|turn| &turn.recalled)),
            recalled: newest.map(|turn| Entry::list(&turn.recalled)).unwrap_or_default(),
            failed,
            tokens,
            micros: 0,
        };
        let receipt = self.receipts().keep(receipt, begun.elapsed());
        Ok(Prepared { body, receipt, session, utterance })
    }

    /// The session of a request, with its newest utterance sealed, and whether that was sealed before.
    async fn session(
        &self,
        sessions: &mut Sessions,
        asked: &Asked<'_>,
        said: &Said,
        thread: &Option<String>,
    ) -> Result<(u64, bool)> {
        let request = asked.request;
        let now = self.store.clock().now().timestamp();
        let mut known = sessions.find(said, now);
        if known.is_none() {
            let recent = self.store.read_thread(thread.as_deref(), RECENT).await?.messages;
            if let Some((turns, fit)) = sessions.recover(said, &recent, now) {
                let first = turns.first().map_or(0, |turn| turn.seq);
                known = Some((sessions.begin(said, first, turns), fit));
            }
        }
        if let Some((session, Fit::Retries | Fit::Regenerates)) = known
            && let Some(newest) = sessions.session(session).and_then(|known| known.turns.last_mut())
        {
            // The utterance may have been forgotten, and is said again then.
            let seq = newest.seq;
            if !self.store.read_seqs(seq..=seq).await?.messages.is_empty() {
                newest.begin_again(said.is_tool_round);
                newest.tried = now;
                return Ok((session, true));
            }
        }
        let message = self.conversation.message(ChatRole::User, request.utterance());
        let message = message.from_source(Source::Client, asked.client);
        let mut message = message.set_aside(request.aside);
        message.thread_id.clone_from(thread);
        let stored = self.store.append_message(message).await?;
        // Masking may have changed the words. The client will send them as it did.
        let mut turn = Turn::new(sessions.digest(request.utterance()), &stored);
        let Some((session, fit)) = known else {
            return Ok((sessions.begin(said, stored.seq, vec![turn]), false));
        };
        if let Some(session) = sessions.session(session) {
            if let Fit::Replaces(at) = fit {
                turn.replaced = session
                    .turns
                    .drain(at..)
                    .flat_map(|old| old.seqs().collect::<Vec<_>>())
                    .collect();
            }
            session.push(turn);
        }
        Ok((session, false))
    }

    /// Hides messages from prompts because newer ones took their place. They stay stored and readable.
    pub(crate) async fn hide(&self, replaced: Vec<u64>) {
        if replaced.is_empty() {
            return;
        }
        let hide = move |profile: &mut Profile| profile.prune(replaced.iter().copied());
        if let Err(error) = self.store.change_profile(Box::new(hide)).await {
            tracing::warn!(%error, "messages that were replaced still stand in prompts");
        }
    }

    /// Stores the calls and results that followed the newest utterance and are not stored yet.
    async fn record_tools(
        &self,
        sessions: &mut Sessions,
        session: u64,
        request: &ChatRequest,
    ) -> Result<()> {
        let newest = request.newest().unwrap_or_default();
        let since = request.lines.get(newest + 1..).unwrap_or_default();
        let Some(turn) = sessions.session(session).and_then(|session| session.turns.last_mut())
        else {
            return Ok(());
        };
        let Some(utterance) = turn.utterance.clone() else { return Ok(()) };
        let new = since.iter().skip(turn.recorded);
        let new: Vec<ChatMessage> = new.map(|line| self.message(line, &utterance)).collect();
        turn.recorded = turn.recorded.max(since.len());
        if new.is_empty() {
            return Ok(());
        }
        match self.append(new, &utterance).await {
            Ok(stored) => turn.stored.extend(stored.iter().map(|stored| stored.seq)),
            // What cannot be stored is the client's own, and goes on to the model all the same.
            Err(
                error @ (Error::UtteranceForgotten
                | Error::TooLarge { .. }
                | Error::InvalidMessage { .. }),
            ) => tracing::warn!(%error, "calls and results of a turn cannot be kept"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Stores calls and results. Long results become artifacts, as those of the library's own turns.
    async fn append(
        &self,
        new: Vec<ChatMessage>,
        utterance: &StoredMessage,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let mut messages = Vec::with_capacity(new.len());
        for message in new {
            messages.push(match message.role {
                ChatRole::Tool => self.conversation.shortened(message).await?,
                _ => message,
            });
        }
        self.store.append_answers(messages, utterance).await
    }

    fn message(&self, line: &Line, utterance: &StoredMessage) -> ChatMessage {
        let message = self.conversation.message(line.speaker, &*line.text);
        let mut message = message.in_turn_of(&utterance.message);
        message.tool_calls.clone_from(&line.calls);
        message.tool_call_id.clone_from(&line.call_id);
        match &line.tool {
            Some(tool) => message.with_metadata(TOOL, tool),
            None => message,
        }
    }
}

/// The numbers of the stored messages of a context.
fn seqs(context: &Context) -> impl Iterator<Item = u64> + '_ {
    context.messages.iter().filter_map(sottovoce::context::ContextMessage::seq)
}

/// The current time at the end of the system prompt.
fn system_time(request: &ChatRequest) -> Option<String> {
    let text = &request.system.as_ref()?.text;
    Some(text.get(time_line::start(text)?..)?.trim().to_owned())
}
