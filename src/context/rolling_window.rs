//! A provider of recent messages: since the last clear, within a time window.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::history::History;
use super::{Context, ContextProvider, ContextRequest, Placement, blocks};
use crate::error::Result;

/// The default length of a window: one day.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// A window that moves in steps moves by this fraction of its length.
const STEPS: i64 = 4;

/// Provides the messages since the last clear or since the window began, whichever is later, as whole exchanges. The
/// window ends at the prompt's time. Its length is in the conversation's settings; the default is a day.
///
/// A window that slides every turn changes the beginning of every prompt, and a local model then reads the whole
/// prompt again. [`in_steps`](Self::in_steps) keeps the beginning unchanged: old messages leave a quarter of the
/// window at a time, so that the window may be up to a quarter longer than its length.
#[must_use]
pub struct RollingWindowProvider {
    window: Duration,
    in_steps: bool,
    /// The default for conversations whose settings do not say whether they have a rolling window, and the provider
    /// for those without one.
    otherwise: Option<(bool, Arc<dyn ContextProvider>)>,
}

impl RollingWindowProvider {
    /// A window of exactly the last 24 hours, unless the conversation's settings say otherwise.
    pub fn new() -> Self {
        Self { window: DAY, in_steps: false, otherwise: None }
    }

    /// Sets the default length for conversations whose settings have none.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Uses a rolling window only in conversations whose settings ask for one. `unless_set` decides for conversations
    /// whose settings do not say. `otherwise` supplies the history of a conversation without a rolling window.
    pub fn where_set(mut self, unless_set: bool, otherwise: Arc<dyn ContextProvider>) -> Self {
        self.otherwise = Some((unless_set, otherwise));
        self
    }

    /// Drops old messages a quarter of the window at a time.
    pub fn in_steps(mut self) -> Self {
        self.in_steps = true;
        self
    }
}

/// The start of a window that ends at `now`. In steps, the start is rounded down to a multiple of the step since
/// 1970.
pub(crate) fn start(now: Timestamp, window: Duration, in_steps: bool) -> Timestamp {
    let window = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
    let start = now.checked_sub(window).unwrap_or(Timestamp::MIN);
    let step = i64::try_from(window.as_millis()).unwrap_or(i64::MAX) / STEPS;
    if !in_steps || step == 0 {
        return start;
    }
    let ms = start.as_millisecond();
    Timestamp::from_millisecond(ms - ms.rem_euclid(step)).unwrap_or(Timestamp::MIN)
}

impl Default for RollingWindowProvider {
    fn default() -> Self {
        Self::new()
    }
}

debug_shows!(RollingWindowProvider: window, in_steps);

#[async_trait]
impl ContextProvider for RollingWindowProvider {
    fn placement(&self) -> Placement {
        Placement::History
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        if let Some((unless_set, otherwise)) = &self.otherwise {
            let own = match request.profile {
                Some(profile) => profile.rolling_window,
                None => request.store.profile().await?.rolling_window,
            };
            if !own.unwrap_or(*unless_set) {
                return otherwise.get_context(request).await;
            }
        }
        if request.n == 0 {
            return Ok(Context::new(Vec::new(), "no history was asked for"));
        }
        let history = History::of(request).await?;
        let now = match request.now {
            Some(now) => now,
            // Without a time, use that of the newest message.
            None => match request.store.read_tail(1).await?.messages.first() {
                Some(newest) => newest.ordered_at(),
                None => return Ok(Context::default()),
            },
        };
        let start = start(now, history.profile.window(self.window), self.in_steps);
        let reading = history.since(start).await?;
        let whole = blocks::whole_from(reading.messages.iter().map(|stored| &stored.message), 0);
        let messages = reading.messages.into_iter().skip(whole);
        let zone = request.store.clock().now().time_zone().clone();
        let why = start.to_zoned(zone).strftime("said since %H:%M on %-d %B %Y").to_string();
        let mut context = Context::new(messages.map(Into::into).collect(), why);
        context.skipped = reading.skipped;
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_steps_reaches_back_up_to_a_quarter_further_and_seldom_moves() {
        let now = |hour: i64| Timestamp::from_second(1_756_000_000 + hour * 3600).unwrap();
        let mut starts = Vec::new();
        for hour in 0..240 {
            let (exact, stepped) = (start(now(hour), DAY, false), start(now(hour), DAY, true));
            assert_eq!(now(hour).duration_since(exact), SignedDuration::from_hours(24));
            let further = exact.duration_since(stepped);
            assert!(!further.is_negative() && further < SignedDuration::from_hours(6));
            starts.push(stepped);
        }
        starts.dedup();
        assert!(starts.len() <= 41, "{}", starts.len());
        assert_eq!(start(now(0), Duration::MAX, true), Timestamp::MIN);
        assert_eq!(start(now(0), Duration::ZERO, true), now(0));
    }
}
