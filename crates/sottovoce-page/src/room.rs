//! What a view works on: the open store, and one of its conversations.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use jiff::tz::TimeZone;
use sottovoce::admin::scopes;
use sottovoce::config::OpenConversations;
use sottovoce::store::Profile;
use sottovoce::{Conversation, ConversationStore, FileConversationStore, Scope};

use crate::app::App;
use crate::english as en;
use crate::failure::Failure;
use crate::house::Opened;
use crate::html::Visit;

/// Every view has this: the browser that asks, and what all requests share.
#[derive(Clone)]
pub(crate) struct Here {
    pub(crate) visit: Visit,
    pub(crate) app: Arc<App>,
}

impl Here {
    /// This machine's time zone.
    pub(crate) fn zone(&self) -> TimeZone {
        self.app.house.clock().now().time_zone().clone()
    }

    /// The open store.
    pub(crate) fn store(&self) -> Result<Arc<OpenConversations>, Failure> {
        match self.app.house.open()? {
            Opened::Store(open) => Ok(open),
            Opened::PassphraseNeeded => Err(Failure::PassphraseNeeded),
            Opened::Nothing => Err(Failure::Nothing),
        }
    }

    /// The scopes of all conversations.
    pub(crate) fn scopes(&self) -> Result<Vec<Scope>, Failure> {
        Ok(scopes(&self.store()?.config().storage_root()?)?)
    }
}

impl FromRequestParts<Arc<App>> for Here {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let nobody = || Visit { csrf: String::new(), read_only: true };
        let visit = parts.extensions.get::<Visit>().cloned().unwrap_or_else(nobody);
        Ok(Self { visit, app: Arc::clone(app) })
    }
}

/// The files of a conversation, to be looked at and no more. One that nobody has open stays so: a list of a thousand conversations
/// must not close those that are in use, whose indexes are in memory.
pub(crate) async fn look_at(
    open: &OpenConversations,
    scope: &Scope,
) -> sottovoce::Result<FileConversationStore> {
    match open.known(scope) {
        Some(_) => Ok(open.open_with_files(scope).await?.1),
        None => open.store(scope).await,
    }
}

/// A conversation that is open.
pub(crate) struct Room {
    pub(crate) here: Here,
    pub(crate) scope: Scope,
    pub(crate) conversation: Conversation,
    pub(crate) store: FileConversationStore,
    pub(crate) profile: Arc<Profile>,
}

impl Room {
    pub(crate) async fn open(here: Here, scope: Scope) -> Result<Self, Failure> {
        let open = here.store()?;
        let (conversation, store) = open.open_with_files(&scope).await?;
        let profile = store.profile().await?;
        Ok(Self { here, scope, conversation, store, profile })
    }

    pub(crate) fn title(&self) -> Option<&str> {
        self.profile.title.as_deref()
    }

    pub(crate) fn zone(&self) -> TimeZone {
        self.here.zone()
    }
}

impl FromRequestParts<Arc<App>> for Room {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let Ok(here) = Here::from_request_parts(parts, app).await;
        let Ok(Path(scope)) = Path::<String>::from_request_parts(parts, app).await else {
            return Err(Failure::NotFound(en::NO_SUCH_PAGE));
        };
        let scope = scope.parse().map_err(|_| Failure::NotFound(en::NO_SUCH_CONVERSATION))?;
        Self::open(here, scope).await
    }
}
