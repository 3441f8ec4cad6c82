//! State shared by all clients: the store, the access rules and the channel of change notices.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::RequestStateCodec;
use rmcp::service::RequestContext;
use sottovoce::config::OpenConversations;
use sottovoce::context::recall::Recall;
use sottovoce::persona::{PersonaConversation, PersonaFailure, PersonaRegistry};
use sottovoce::store::ForgetReport;
use sottovoce::{
    Config, Conversation, ConversationStore, Error, FileConversationStore, Result, Scope,
};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::access::Access;
use crate::fault::Fault;

/// How many changes a client may lag behind. Beyond that it only learns that something changed.
const BEHIND: usize = 256;
/// How long an answer may go on after the server was told to stop. Clients that start a server kill it soon after.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Recently stored answers: conversation and utterance, mapped to the time and the answer's number. The utterance is
/// identified by its file name, because its number may be given again after the conversation was removed.
pub(crate) type Answered = HashMap<(Scope, String), (Instant, u64)>;

/// State shared by all clients.
pub struct Hub {
    pub(crate) conversations: Arc<OpenConversations>,
    pub(crate) registry: PersonaRegistry,
    pub(crate) access: Access,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) codec: RequestStateCodec,
    pub(crate) stop: CancellationToken,
    pub(crate) answered: Arc<tokio::sync::Mutex<Answered>>,
}

/// A change that clients may subscribe to.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// The list of resources changed.
    Resources,
    /// The content behind a URI changed.
    Updated(String),
}

/// The conversation that a call addresses.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The id that clients use for it.
    pub(crate) id: String,
    pub(crate) scope: Scope,
    /// The context, if the conversation is one.
    pub(crate) context: Option<PersonaConversation>,
}

impl From<Scope> for Target {
    fn from(scope: Scope) -> Self {
        Self { id: scope.to_string(), scope, context: None }
    }
}

impl From<PersonaConversation> for Target {
    fn from(context: PersonaConversation) -> Self {
        let id = context.id.clone();
        Self { scope: Scope::Named { id: id.clone() }, id, context: Some(context) }
    }
}

impl Hub {
    /// Creates a hub for these conversations.
    ///
    /// # Errors
    /// [`Error::Config`] if `Mcp.Scopes` is not valid, and [`Error::NoRandomness`].
    pub fn new(conversations: Arc<OpenConversations>) -> Result<Arc<Self>> {
        let access = Access::parse(&conversations.config().mcp.scopes)?;
        let registry = conversations.contexts().clone();
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).map_err(|_| Error::NoRandomness)?;
        let codec = RequestStateCodec::try_new(secret.as_slice())
            .map_err(|error| Error::host("the protocol's library", error))?;
        Ok(Arc::new(Self {
            conversations,
            registry,
            access,
            changes: broadcast::Sender::new(BEHIND),
            codec,
            stop: CancellationToken::new(),
            answered: Arc::default(),
        }))
    }

    /// A token that ends everything that waits for changes when it is cancelled.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns when a call must end: its client has cancelled it, or the server is stopping and the grace period has
    /// passed.
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

    /// Waits for cancelled turns and stores their partial answers. Call this last when the server ends.
    pub async fn close(&self) {
        self.conversations.close().await;
    }

    pub(crate) fn config(&self) -> &Config {
        self.conversations.config()
    }

    /// Publishes a change to all subscribers.
    pub(crate) fn publish(&self, change: Change) {
        // Having no subscriber is not an error.
        drop(self.changes.send(change));
    }

    /// Fails if the server may not use contexts.
    pub(crate) fn check_contexts(&self) -> Result<(), Fault> {
        match self.access.contexts {
            true => Ok(()),
            false => Err(Fault::new(
                "this server may not use contexts; the setting Mcp.Scopes does not allow them",
            )),
        }
    }

    /// Finds a context by id or name.
    pub(crate) async fn context(&self, id: &str) -> Result<PersonaConversation, Fault> {
        self.check_contexts()?;
        match self.registry.find(id).await {
            Ok(context) => Ok(context),
            Err(error) => Err(self.with_names(error).await),
        }
    }

    /// Resolves an id to a context, or to a conversation by its scope if the server may use that.
    pub(crate) async fn target(&self, id: &str) -> Result<Target, Fault> {
        if let Ok(scope) = id.parse::<Scope>()
            && self.access.has(&scope)
        {
            return Ok(scope.into());
        }
        Ok(self.context(id).await?.into())
    }

    /// The conversation with this id, or the one that clients remember in if they name none.
    pub(crate) async fn memory(&self, id: Option<&str>) -> Result<Target, Fault> {
        match id {
            Some(id) => self.target(id).await,
            None => Ok(self.access.memory().into()),
        }
    }

    /// Adds the names of the existing contexts to an error about a context.
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

    /// Opens the store of a conversation. Contexts that are deleted or expired open too.
    pub(crate) async fn store(&self, target: &Target) -> Result<FileConversationStore> {
        match &target.context {
            Some(context) => self.registry.store(&context.id).await,
            None => self.conversations.store(&target.scope).await,
        }
    }

    /// Opens the store of a conversation for writing. Fails for contexts that are deleted, expired or full.
    pub(crate) async fn store_to_write(&self, target: &Target) -> Result<FileConversationStore> {
        match &target.context {
            Some(context) => self.registry.open(&context.id).await,
            None => self.conversations.store(&target.scope).await,
        }
    }

    /// Forgets the messages with these numbers. A conversation that is open must forget them too.
    pub(crate) async fn forget(
        &self,
        target: &Target,
        seqs: &[RangeInclusive<u64>],
    ) -> Result<ForgetReport> {
        match self.conversations.known(&target.scope) {
            Some(conversation) => conversation.forget(seqs).await,
            None => self.store(target).await?.forget(seqs).await,
        }
    }

    /// The index of what was said in a conversation. It stays in memory, so that its meanings are worked out.
    pub(crate) async fn index(&self, target: &Target) -> Result<Arc<Recall>> {
        Ok(Arc::clone(self.conversations.open(&target.scope).await?.index()))
    }

    /// The conversation of a target. All clients share one, so that turns wait for each other. A call that only
    /// answers a stored utterance also works in a full context.
    pub(crate) async fn conversation(
        &self,
        target: &Target,
        is_said: bool,
    ) -> Result<Conversation> {
        if let Some(context) = &target.context {
            match self.registry.open(&context.id).await {
                Err(Error::Persona(PersonaFailure::Full { .. })) if is_said => {}
                store => drop(store?),
            }
        }
        self.conversations.open(&target.scope).await
    }
}

sottovoce::debug_shows!(Hub: registry, access);
