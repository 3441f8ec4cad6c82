//! A provider of a context's history, up to the limit of its persona.

use std::sync::Arc;

use async_trait::async_trait;

use super::history::History;
use super::{Context, ContextProvider, ContextRequest, Placement, blocks};
use crate::context::tokens::TokenRates;
use crate::error::Result;
use crate::store::{Profile, ReadResult};

/// How many messages the first read takes.
const FIRST: usize = 128;

/// How many times the history's limit is read. The model may count fewer tokens than are estimated here.
const SPARE: usize = 2;

/// Provides a context's history as far as its persona's `max_history_tokens` may need it. The prompt builder drops
/// what exceeds that limit. For a conversation without a persona, or with a rolling window in its settings, another
/// provider supplies the history.
pub struct PersonaHistoryProvider {
    otherwise: Arc<dyn ContextProvider>,
}

impl PersonaHistoryProvider {
    /// `otherwise` supplies the history of a conversation without a persona.
    pub fn new(otherwise: Arc<dyn ContextProvider>) -> Self {
        Self { otherwise }
    }
}

debug_shows!(PersonaHistoryProvider);

#[async_trait]
impl ContextProvider for PersonaHistoryProvider {
    fn placement(&self) -> Placement {
        Placement::History
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let limit = match request.profile {
            Some(profile) => limit(profile),
            None => limit(&*request.store.profile().await?),
        };
        let Some(limit) = limit.filter(|_| request.n > 0) else {
            return self.otherwise.get_context(request).await;
        };
        let enough = (limit as usize).saturating_mul(SPARE);
        let history = History::of(request).await?;
        let mut most = FIRST;
        let mut reading = history.newest(most).await?;
        while reading.messages.len() == most && tokens(&reading, limit) < enough {
            most = most.saturating_mul(2);
            reading = history.newest(most).await?;
        }
        let whole = blocks::whole_from(reading.messages.iter().map(|stored| &stored.message), 0);
        let messages = reading.messages.into_iter().skip(whole);
        let why = format!("one of the newest messages, which may take {limit} tokens");
        let mut context = Context::new(messages.map(Into::into).collect(), why);
        context.skipped = reading.skipped;
        Ok(context)
    }
}

fn limit(profile: &Profile) -> Option<u32> {
    let assigned_persona =
        profile.assigned_persona.as_ref().filter(|_| profile.rolling_window != Some(true));
    assigned_persona.map(|assigned_persona| assigned_persona.persona.max_history_tokens)
}

/// Estimated tokens. A message that takes over half of the limit counts nothing, since the prompt may pass over it.
fn tokens(reading: &ReadResult, limit: u32) -> usize {
    let rates = TokenRates::default();
    let tokens = reading.messages.iter().map(|stored| rates.estimate_message(&stored.message));
    tokens.filter(|tokens| *tokens <= limit as usize / 2).sum()
}
