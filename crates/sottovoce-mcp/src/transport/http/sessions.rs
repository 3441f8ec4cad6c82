//! Sessions of clients that begin with a handshake: limited in number and in idle time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use sottovoce_net::lock;

use super::Limits;

/// How long closing a session may take.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    limits: Limits,
    uses: Uses,
    /// Held while a session is created, so that two at once do not exceed the limit.
    making: tokio::sync::Mutex<()>,
}

type Uses = Arc<Mutex<HashMap<SessionId, Use>>>;

/// How a session is used.
#[derive(Debug, Clone, Copy)]
struct Use {
    last: Instant,
    /// The number of streams that its client listens to.
    streams: usize,
    /// Whether it has received any request.
    is_used: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("too many sessions are open")]
    TooMany,
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(super) fn new(limits: Limits) -> Self {
        let mut local = LocalSessionManager::default();
        // The library's own timer would also end sessions whose client only listens.
        local.session_config.keep_alive = None;
        Self { local, limits, uses: Uses::default(), making: tokio::sync::Mutex::default() }
    }

    /// Ends sessions that have been idle too long. Runs until it is dropped.
    pub(super) async fn sweep(&self) {
        let pause =
            (self.limits.idle / 8).clamp(Duration::from_millis(10), Duration::from_secs(60));
        loop {
            tokio::time::sleep(pause).await;
            let is_over =
                |known: &Use| known.streams == 0 && known.last.elapsed() >= self.limits.idle;
            let over: Vec<_> = {
                let uses = lock(&self.uses);
                uses.iter().filter(|(_, known)| is_over(known)).map(|(id, _)| id.clone()).collect()
            };
            for id in over {
                self.end(&id).await;
            }
        }
    }

    /// Ends the session that has been idle longest if the limit is reached. Sessions that were never used go first,
    /// so that a flood of new ones does not end the others.
    async fn make_room(&self) -> Result<(), SessionError> {
        let idlest = {
            let uses = lock(&self.uses);
            if uses.len() < self.limits.sessions {
                return Ok(());
            }
            let idle = uses.iter().filter(|(_, known)| known.streams == 0);
            let idlest = idle.min_by_key(|(_, known)| (known.is_used, known.last));
            idlest.map(|(id, _)| id.clone())
        };
        self.end(&idlest.ok_or(SessionError::TooMany)?).await;
        Ok(())
    }

    async fn end(&self, id: &SessionId) {
        if tokio::time::timeout(PATIENCE, self.close_session(id)).await.is_err() {
            tracing::warn!("a session did not close in time");
        }
    }

    /// Notes that a session is in use now.
    fn touch(&self, id: &SessionId, is_asked: bool) {
        if let Some(known) = lock(&self.uses).get_mut(id) {
            known.last = Instant::now();
            known.is_used |= is_asked;
        }
    }

    /// A stream that marks its session as used while it is open.
    fn watched<S: Stream<Item = ServerSseMessage> + Send + Sync + 'static>(
        &self,
        id: &SessionId,
        stream: S,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let listening = Listening::begin(Arc::clone(&self.uses), id.clone());
        stream.map(move |message| {
            let _ = &listening;
            message
        })
    }
}

/// Lives as long as a client listens.
struct Listening {
    uses: Uses,
    id: SessionId,
}

impl Listening {
    fn begin(known: Uses, id: SessionId) -> Self {
        if let Some(known) = lock(&known).get_mut(&id) {
            known.streams += 1;
        }
        Self { uses: known, id }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(known) = lock(&self.uses).get_mut(&self.id) {
            known.streams = known.streams.saturating_sub(1);
            known.last = Instant::now();
        }
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _making = self.making.lock().await;
        self.make_room().await?;
        let (id, transport) = self.local.create_session().await?;
        let begun = Use { last: Instant::now(), streams: 0, is_used: false };
        lock(&self.uses).insert(id.clone(), begun);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        lock(&self.uses).remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.touch(id, true);
        Ok(self.watched(id, self.local.create_stream(id, message).await?))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.touch(id, false);
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.touch(id, false);
        Ok(self.watched(id, self.local.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.touch(id, false);
        Ok(self.watched(id, self.local.resume(id, last_event_id).await?))
    }
}
