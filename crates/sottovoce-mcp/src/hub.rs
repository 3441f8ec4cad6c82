//! What all clients share: the store, which part of it they may touch, and who hears of changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::RequestStateCodec;
use rmcp::service::RequestContext;
use sottovoce::persona::{PersonaConversation, PersonaFailure, PersonaRegistry};
use sottovoce::{
    Clock, Config, Conversation, ConversationStore, EncryptionKey, Error, FileConversationStore,
    Result, Scope,
};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::access::Access;
use crate::fault::Fault;
use crate::sampling::Answered;

/// How many changes a client may be behind before it is only told that there were some.
const BEHIND: usize = 256;
/// How long a model may go on answering when the server ends. Clients that start a server kill it soon after.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// How many conversations are kept ready.
const READY: usize = 256;

/// What all clients share.
pub struct Hub {
    pub(crate) config: Config,
    pub(crate) registry: PersonaRegistry,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) access: Access,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) codec: RequestStateCodec,
    pub(crate) stop: CancellationToken,
    pub(crate) answered: Arc<tokio::sync::Mutex<Answered>>,
    keys: Vec<Arc<EncryptionKey>>,
    ready: Mutex<HashMap<Scope, Conversation>>,
}

/// Something that clients may want to hear of.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// There are others than before.
    Resources,
    /// What is behind a URI is not as it was.
    Updated(String),
}

/// A conversation that a client means.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// How clients call it.
    pub(crate) id: String,
    pub(crate) scope: Scope,
    /// What it is, where it is a context.
    pub(crate) context: Option<PersonaConversation>,
}

impl Hub {
    /// A server of the configured store, opened with these keys.
    ///
    /// # Errors
    /// [`Error::Config`] for scopes that are none, [`Error::NoKey`] for no key, and [`Error::NoRandomness`].
    pub fn new(
        config: Config,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let access = Access::parse(&config.mcp.scopes)?;
        let registry = config.contexts(keys.clone(), Arc::clone(&clock))?;
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).map_err(|_| Error::NoRandomness)?;
        let codec = RequestStateCodec::try_new(secret.as_slice())
            .map_err(|error| Error::host("the protocol's library", error))?;
        Ok(Arc::new(Self {
            config,
            registry,
            clock,
            access,
            changes: broadcast::Sender::new(BEHIND),
            codec,
            stop: CancellationToken::new(),
            answered: Arc::default(),
            keys,
            ready: Mutex::default(),
        }))
    }

    /// Ends what waits for changes, when it is cancelled.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns when a call is not to go on: its client has given it up, or the server ends and a last moment is over.
    pub(crate) async fn given_up(&self, request: &RequestContext<RoleServer>) {
        let ending = async {
            self.stop.cancelled().await;
            tokio::time::sleep(LAST_MOMENT).await;
        };
        tokio::select! {
            () = request.ct.cancelled() => {}
            () = ending => {}
        }
    }

    /// Waits for turns that are given up, and keeps what had come of their answers. Whoever ends a server calls it last.
    pub async fn close(&self) {
        let open: Vec<_> = self.ready().values().cloned().collect();
        let closing = open.iter().map(async |conversation| {
            if let Err(error) = conversation.close().await {
                tracing::warn!(%error, "the beginning of an answer is not kept");
            }
        });
        futures_util::future::join_all(closing).await;
    }

    /// Tells whoever listens.
    pub(crate) fn tell(&self, change: Change) {
        // Nobody listening is no failure.
        drop(self.changes.send(change));
    }

    /// Refuses where contexts are not to be touched.
    pub(crate) fn check_contexts(&self) -> Result<(), Fault> {
        match self.access.contexts {
            true => Ok(()),
            false => Err(Fault::new("this server may not touch contexts; Mcp.Scopes says which")),
        }
    }

    /// The context of that id or name.
    pub(crate) async fn context(&self, id: &str) -> Result<PersonaConversation, Fault> {
        self.check_contexts()?;
        match self.registry.find(id).await {
            Ok(context) => Ok(context),
            Err(error) => Err(self.with_names(error).await),
        }
    }

    /// What a client means by an id: a context, or a conversation by its scope, if it may be touched.
    pub(crate) async fn target(&self, id: &str) -> Result<Target, Fault> {
        if let Ok(scope) = id.parse::<Scope>()
            && self.access.has(&scope)
        {
            return Ok(Target { id: scope.to_string(), scope, context: None });
        }
        let context = self.context(id).await?;
        let scope = Scope::Named { id: context.id.clone() };
        Ok(Target { id: context.id.clone(), scope, context: Some(context) })
    }

    /// An error about contexts with the names of those that there are.
    async fn with_names(&self, error: Error) -> Fault {
        let Ok(listed) = self.registry.list().await else { return error.into() };
        let open = listed.contexts.iter().filter(|context| context.is_open()).take(20);
        let names: Vec<_> =
            open.map(|context| format!("{} ({})", context.id, context.name)).collect();
        if names.is_empty() {
            return error.into();
        }
        let fault = Fault::from(error);
        Fault::new(format!("{}. Available contexts: {}", fault.reason(), names.join(", ")))
    }

    /// The store of a conversation; of a context, whether or not anybody may talk to it.
    pub(crate) async fn store(&self, target: &Target) -> Result<FileConversationStore> {
        match &target.context {
            Some(context) => self.registry.store(&context.id).await,
            None => self.open(target.scope.clone()).await,
        }
    }

    /// The same for something to be said in it.
    pub(crate) async fn store_to_write(&self, target: &Target) -> Result<FileConversationStore> {
        match &target.context {
            Some(context) => self.registry.open(&context.id).await,
            None => self.open(target.scope.clone()).await,
        }
    }

    async fn open(&self, scope: Scope) -> Result<FileConversationStore> {
        let clock = Arc::clone(&self.clock);
        self.config.open_store_with(self.keys.clone(), scope, clock).await
    }

    /// The conversation of a target, the same one for every client, so that turns wait for each other. What only has to
    /// be answered is answered also where there is no room for more.
    pub(crate) async fn conversation(
        &self,
        target: &Target,
        is_said: bool,
    ) -> Result<Conversation> {
        let store = match self.store_to_write(target).await {
            Err(Error::Context(PersonaFailure::Full { .. })) if is_said => self.store(target).await,
            store => store,
        };
        let store: Arc<dyn ConversationStore> = Arc::new(store?);
        if let Some(known) = self.ready_conversation(target) {
            // Its folder may have been taken away and brought back.
            match known.store().profile().await {
                Ok(_) => return Ok(known),
                Err(Error::FolderReplaced { .. }) => drop(self.ready().remove(&target.scope)),
                Err(error) => return Err(error),
            }
        }
        let conversation = self.config.conversation(store)?;
        let mut ready = self.ready();
        if ready.len() >= READY {
            ready.clear();
        }
        // Another call may have been faster.
        Ok(ready.entry(target.scope.clone()).or_insert(conversation).clone())
    }

    /// The conversation of a target, if anybody has talked in it here.
    pub(crate) fn ready_conversation(&self, target: &Target) -> Option<Conversation> {
        self.ready().get(&target.scope).cloned()
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Conversation>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("registry", &self.registry)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
