//! The store that the page shows: closed, open, or in need of a passphrase.

use std::sync::{Arc, Mutex};

use sottovoce::config::OpenConversations;
use sottovoce::{Clock, Config, EncryptionKey, Error, Result, Scope};
use sottovoce_net::lock;
use zeroize::Zeroizing;

/// The store, and how it is opened.
pub(crate) struct House {
    config: Config,
    clock: Arc<dyn Clock>,
    given: Option<Vec<Arc<EncryptionKey>>>,
    /// Whether other servers have it open too.
    is_shared: bool,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    open: Option<Arc<OpenConversations>>,
    /// Whether a passphrase that was typed on the page opened it.
    is_of_passphrase: bool,
}

/// What there is to be shown.
pub(crate) enum Opened {
    Store(Arc<OpenConversations>),
    PassphraseNeeded,
    /// There is no key and no store yet.
    Nothing,
}

impl House {
    pub(crate) fn own(config: Config, clock: Arc<dyn Clock>) -> Self {
        Self { config, clock, given: None, is_shared: false, inside: Mutex::default() }
    }

    pub(crate) fn shared(conversations: Arc<OpenConversations>) -> Self {
        let (config, clock) = (conversations.config().clone(), Arc::clone(conversations.clock()));
        let inside = Inside { open: Some(conversations), is_of_passphrase: false };
        Self { config, clock, given: None, is_shared: true, inside: Mutex::new(inside) }
    }

    pub(crate) fn keys(self, keys: Vec<Arc<EncryptionKey>>) -> Self {
        Self { given: Some(keys), ..self }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The open store. Opens it, if that takes nothing from the owner.
    ///
    /// # Errors
    /// Those of reading the keys.
    pub(crate) fn open(&self) -> Result<Opened> {
        if let Some(open) = &lock(&self.inside).open {
            return Ok(Opened::Store(Arc::clone(open)));
        }
        let keys = match self.given.clone().map_or_else(|| self.config.encryption_keys(), Ok) {
            Ok(keys) => keys,
            Err(Error::PassphraseNeeded { .. }) => return Ok(Opened::PassphraseNeeded),
            Err(Error::NoKey | Error::PlaceholderKey) => return Ok(Opened::Nothing),
            Err(error) => return Err(error),
        };
        Ok(Opened::Store(self.enter(keys, false)?))
    }

    fn enter(
        &self,
        keys: Vec<Arc<EncryptionKey>>,
        is_of_passphrase: bool,
    ) -> Result<Arc<OpenConversations>> {
        let opened = OpenConversations::new(self.config.clone(), keys, Arc::clone(&self.clock))?;
        let mut inside = lock(&self.inside);
        inside.is_of_passphrase = is_of_passphrase;
        // Another request may have been faster. All share one.
        Ok(Arc::clone(inside.open.get_or_insert(opened)))
    }

    /// Opens the store with a passphrase.
    ///
    /// # Errors
    /// [`Error::WrongKey`] for another passphrase than the store's, and those of opening it.
    pub(crate) async fn unlock(&self, passphrase: Zeroizing<String>) -> Result<()> {
        let keys = self.config.keys_of_passphrase(passphrase)?;
        self.config.open_store_with(keys.clone(), Scope::Default, Arc::clone(&self.clock)).await?;
        self.enter(keys, true)?;
        Ok(())
    }

    /// Forgets a key that was made from a passphrase, so that it must be typed again. Turns in progress are stored first.
    pub(crate) fn lock(&self) {
        let mut inside = lock(&self.inside);
        if !inside.is_of_passphrase || self.is_shared {
            return;
        }
        if let Some(open) = inside.open.take() {
            tokio::spawn(async move { open.close().await });
        }
    }

    /// Whether nobody can read the store before a passphrase is typed.
    pub(crate) fn needs_passphrase(&self) -> bool {
        matches!(self.open(), Ok(Opened::PassphraseNeeded))
    }

    /// Stores what was spoken. The last thing that a server does.
    pub(crate) async fn close(&self) {
        let open = lock(&self.inside).open.clone();
        if let Some(open) = open.filter(|_| !self.is_shared) {
            open.close().await;
        }
    }
}
