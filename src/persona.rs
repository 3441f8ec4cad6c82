//! The contexts of a store: conversations in which the model plays a persona.

mod assign;
mod backup;
mod change;
mod everything;
mod listed;
mod naming;
mod presets;
mod upkeep;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

pub use crate::error::PersonaFailure;
pub use crate::store::record::persona::{AssignedPersona, Persona, Preset};
pub use assign::{assign, change_assigned, unassign};
pub use change::{NewPersonaConversation, PersonaChange, PersonaConversationChange, PresetChange};
pub use everything::StoreContents;
pub use listed::{PersonaConversation, PersonaConversations};
pub use upkeep::MaintenanceReport;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::scope::{BACKUPS, Scope};
use crate::store::file_store::blocking;
use crate::store::folder::conversation_folders::heads;
use crate::store::record::persona::check_name;
use crate::store::{ConversationStore, FileConversationStore, Profile, StoreOptions};
use listed::Seen;

/// How many conversations are kept open.
const OPEN: usize = 256;

/// How many ids an error names.
const NAMED: usize = 10;

/// Limits of contexts and of their upkeep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersonaLimits {
    /// The most contexts that are neither deleted nor expired: 1,000.
    pub contexts: usize,
    /// The most messages of one context: 100,000.
    pub messages: u64,
    /// Upkeep removes a context this many days after it first found it expired or deleted: 7.
    pub remove_after_days: u32,
    /// The number of daily backups to keep: 7. With 0, none are made.
    pub daily_backups: usize,
}

impl Default for PersonaLimits {
    fn default() -> Self {
        Self { contexts: 1000, messages: 100_000, remove_after_days: 7, daily_backups: 7 }
    }
}

/// The contexts of a store: conversations with a scope [`Scope::Named`] and a [`AssignedPersona`] in their settings. Clones
/// share one registry. Several processes may each have one on the same store.
///
/// A context expires when nobody has interacted with it for the number of days in its persona. Talking to an expired
/// or deleted context is refused. It can be restored until [`maintain`](Self::maintain) removes it, which happens
/// only after a sealed backup.
#[derive(Clone)]
#[must_use]
pub struct PersonaRegistry {
    root: PathBuf,
    options: StoreOptions,
    limits: PersonaLimits,
    backups: PathBuf,
    open: Arc<Mutex<HashMap<String, FileConversationStore>>>,
    seen: Arc<Seen>,
    /// Held from the check of a free name until a context has it.
    naming: Arc<tokio::sync::Mutex<()>>,
}

impl PersonaRegistry {
    /// A registry of the contexts in the store at this root. Backups go to the store's folder `backups`.
    pub fn new(root: impl Into<PathBuf>, options: StoreOptions) -> Self {
        let root = root.into();
        let backups = root.join(BACKUPS);
        let limits = PersonaLimits::default();
        let (open, seen, naming) = (Arc::default(), Arc::default(), Arc::default());
        Self { root, options, limits, backups, open, seen, naming }
    }

    /// Sets the limits.
    pub fn limits(self, limits: PersonaLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets another folder for backups, also in the options of the contexts' stores.
    pub fn backups(self, folder: impl Into<PathBuf>) -> Self {
        let backups = folder.into();
        Self { options: self.options.backups(&backups), backups, ..self }
    }

    /// The folder for backups.
    pub fn backup_folder(&self) -> &Path {
        &self.backups
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.options.time()
    }

    fn now(&self) -> Timestamp {
        self.clock().now().timestamp()
    }

    /// Opens the store of a context, even if it is deleted or expired.
    ///
    /// # Errors
    /// [`PersonaFailure::NoSuchConversation`], and those of [`get`](Self::get).
    pub async fn store(&self, id: &str) -> Result<FileConversationStore> {
        self.get(id).await?;
        self.opened(id).await
    }

    /// Opens the store of a context for writing.
    ///
    /// # Errors
    /// [`PersonaFailure::Deleted`], [`PersonaFailure::Expired`] and [`PersonaFailure::Full`]; those of
    /// [`get`](Self::get).
    pub async fn open(&self, id: &str) -> Result<FileConversationStore> {
        let context = self.get(id).await?;
        if let Some(at) = context.assigned_persona.deleted_at {
            return Err(PersonaFailure::Deleted { at }.into());
        }
        if context.is_expired {
            return Err(PersonaFailure::Expired { at: context.expires_at }.into());
        }
        let limit = self.limits.messages;
        // Two: the utterance and its answer.
        if context.messages.saturating_add(2) > limit {
            return Err(PersonaFailure::Full { limit }.into());
        }
        self.opened(id).await
    }

    async fn opened(&self, id: &str) -> Result<FileConversationStore> {
        if let Some(store) = self.held().get(id) {
            return Ok(store.clone());
        }
        let scope = Scope::Named { id: id.to_owned() };
        let store = self.options.clone().scope(scope).open(&self.root).await?;
        let mut held = self.held();
        if held.len() >= OPEN {
            held.clear();
        }
        held.insert(id.to_owned(), store.clone());
        Ok(store)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<String, FileConversationStore>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current state of a conversation; `None` if its folder has gone since it was opened.
    async fn look(&self, id: &str) -> Result<Option<PersonaConversation>> {
        let looked = match self.opened(id).await?.conversation_state().await {
            // Another process has removed it. It may have been restored since.
            Err(Error::FolderReplaced { .. }) => {
                self.held().remove(id);
                self.opened(id).await?.conversation_state().await
            }
            looked => looked,
        };
        Ok(PersonaConversation::new(id, &looked?, self.now()))
    }

    /// All contexts, newest first. Contexts created at the same time are in the order of their ids.
    ///
    /// # Errors
    /// Those of reading the store. If a single context cannot be read, the result names it.
    pub async fn list(&self) -> Result<PersonaConversations> {
        let (mut contexts, now) = (PersonaConversations::default(), self.now());
        let root = self.root.clone();
        let heads = blocking(move || heads(&root)).await?;
        let named = heads.into_iter().filter_map(|(scope, head)| match scope {
            Scope::Named { id } => Some((id, head)),
            _ => None,
        });
        let named: Vec<_> = named.collect();
        self.seen.keep(&named.iter().map(|(id, _)| id.as_str()).collect());
        for (id, head) in named {
            if let Some(known) = head.as_ref().and_then(|head| self.seen.get(&id, head)) {
                contexts.contexts.extend(known.map(|context| context.at(now)));
                continue;
            }
            match self.look(&id).await {
                Ok(context) => {
                    contexts.contexts.extend(context.clone());
                    if let Some(head) = head {
                        self.seen.put(id, head, context);
                    }
                }
                Err(Error::Damaged { .. } | Error::FolderReplaced { .. }) => {
                    contexts.unreadable.push(id);
                }
                Err(error) => return Err(error),
            }
        }
        contexts.contexts.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
        Ok(contexts)
    }

    /// Returns a context by its id.
    ///
    /// # Errors
    /// [`PersonaFailure::NoSuchConversation`] names the existing contexts; [`Error::Damaged`] if its settings cannot be
    /// read.
    pub async fn get(&self, id: &str) -> Result<PersonaConversation> {
        match self.by_id(id).await? {
            Some(context) => Ok(context),
            None => Err(self.no_such(id).await?),
        }
    }

    async fn by_id(&self, id: &str) -> Result<Option<PersonaConversation>> {
        // An invalid scope id cannot be a context's id.
        match (Scope::Named { id: id.to_owned() }).folder() {
            Ok(_) => self.look(id).await,
            Err(_) => Ok(None),
        }
    }

    /// Returns a context by its id, or by its name if that is unique. Letter case does not matter.
    ///
    /// # Errors
    /// [`PersonaFailure::AmbiguousName`] if several contexts have the name, and those of [`get`](Self::get).
    pub async fn find(&self, id_or_name: &str) -> Result<PersonaConversation> {
        if let Some(context) = self.by_id(id_or_name).await? {
            return Ok(context);
        }
        let listed = self.list().await?.contexts;
        match Self::called(&listed, id_or_name)? {
            Some(context) => Ok(context.clone()),
            None => Err(self.no_such(id_or_name).await?),
        }
    }

    /// An error that suggests contexts: first those with a similar id or name, then the newest.
    async fn no_such(&self, meant: &str) -> Result<Error> {
        let mut contexts = self.list().await?.contexts;
        let is_like = |context: &PersonaConversation| {
            context.id.starts_with(meant) || context.name.to_lowercase() == meant.to_lowercase()
        };
        contexts.sort_by_key(|context| (!is_like(context), !context.is_open()));
        let known = contexts.into_iter().take(NAMED).map(|context| context.id).collect();
        Ok(PersonaFailure::NoSuchConversation { known }.into())
    }

    /// Creates a context.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`], [`PersonaFailure::TooManyConversations`], [`PersonaFailure::ConversationNameTaken`], and
    /// those of opening the store.
    pub async fn create(&self, new: NewPersonaConversation) -> Result<PersonaConversation> {
        new.check()?;
        let NewPersonaConversation { name, persona, preset, numbered } = new;
        let _naming = self.naming.lock().await;
        self.check_room().await?;
        let name = self.name_for_new(name, numbered).await?;
        let now = self.now();
        let id = naming::fresh_id("context", now)?;
        let assigned_persona = AssignedPersona { preset, ..AssignedPersona::new(persona, now) };
        let make = move |profile: &mut Profile| {
            profile.rename(Some(name.clone()));
            profile.created_at = Some(now);
            profile.assigned_persona = Some(assigned_persona.clone());
        };
        self.change(&id, make).await
    }

    /// Fails if the number of contexts has reached its limit.
    async fn check_room(&self) -> Result<()> {
        let limit = self.limits.contexts;
        // If there are fewer conversations than that, they need not be opened.
        if self.ids().await?.len() < limit {
            return Ok(());
        }
        let living = self.list().await?.contexts.iter().filter(|c| c.is_open()).count();
        match living < limit {
            true => Ok(()),
            false => Err(PersonaFailure::TooManyConversations { limit }.into()),
        }
    }

    /// The ids of all named conversations, whether they are contexts or not.
    async fn ids(&self) -> Result<Vec<String>> {
        let id = |scope| match scope {
            Scope::Named { id } => Some(id),
            _ => None,
        };
        Ok(self.scopes().await?.into_iter().filter_map(id).collect())
    }

    /// Changes the given fields of a context. This counts as an interaction. Setting it active restores a deleted
    /// one.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`], [`PersonaFailure::ConversationNameTaken`], and those of [`get`](Self::get). Nothing is
    /// changed then.
    pub async fn update(
        &self,
        id: &str,
        change: PersonaConversationChange,
    ) -> Result<PersonaConversation> {
        let _naming = self.naming.lock().await;
        let context = self.get(id).await?;
        if let Some(name) = &change.name {
            check_name(name)?;
        }
        let is_taken_back = change.is_active == Some(true) && !context.is_active();
        if change.name.is_some() || is_taken_back {
            let name = change.name.as_ref().unwrap_or(&context.name);
            self.check_name_is_free(name, id).await?;
        }
        let mut persona = context.assigned_persona.persona;
        change.persona.apply(&mut persona);
        persona.check()?;
        let now = self.now();
        let apply = move |profile: &mut Profile| {
            let PersonaConversationChange { name, persona, is_active } = change.clone();
            if let Some(name) = name {
                profile.rename(Some(name));
            }
            let Some(assigned_persona) = &mut profile.assigned_persona else { return };
            persona.apply(&mut assigned_persona.persona);
            match is_active {
                Some(true) => assigned_persona.deleted_at = None,
                Some(false) => {
                    assigned_persona.deleted_at = assigned_persona.deleted_at.or(Some(now))
                }
                None => {}
            }
            assigned_persona.updated_at = now;
        };
        self.change(id, apply).await
    }

    /// Postpones the expiry by this many days, or by the persona's number. Counts from the expiry, or from now if
    /// that has passed.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`] for days outside a persona's limits, [`PersonaFailure::Deleted`], and those of
    /// [`get`](Self::get).
    pub async fn extend(&self, id: &str, days: Option<u32>) -> Result<PersonaConversation> {
        let context = self.get(id).await?;
        if let Some(at) = context.assigned_persona.deleted_at {
            return Err(PersonaFailure::Deleted { at }.into());
        }
        let mut wanted = context.assigned_persona.persona.clone();
        wanted.expiry_days = days.unwrap_or(wanted.expiry_days);
        wanted.check()?;
        let from = context.expires_at.max(self.now());
        let by = SignedDuration::from_hours(i64::from(wanted.expiry_days) * 24);
        let to = from.checked_add(by).unwrap_or(Timestamp::MAX);
        let apply = move |profile: &mut Profile| {
            if let Some(assigned_persona) = &mut profile.assigned_persona {
                assigned_persona.extended_to = assigned_persona.extended_to.max(Some(to));
            }
        };
        self.change(id, apply).await
    }

    /// Deletes a context: nobody can talk to it any more. It stays until it is [removed](Self::remove), and
    /// [`update`](Self::update) can restore it.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub async fn delete(&self, id: &str) -> Result<PersonaConversation> {
        self.get(id).await?;
        let now = self.now();
        let apply = move |profile: &mut Profile| {
            if let Some(assigned_persona) = &mut profile.assigned_persona {
                assigned_persona.deleted_at = assigned_persona.deleted_at.or(Some(now));
            }
        };
        self.change(id, apply).await
    }

    async fn change(
        &self,
        id: &str,
        change: impl FnMut(&mut Profile) + Send + 'static,
    ) -> Result<PersonaConversation> {
        self.opened(id).await?.change_profile(Box::new(change)).await?;
        self.look(id)
            .await?
            .ok_or_else(|| PersonaFailure::NoSuchConversation { known: Vec::new() }.into())
    }
}

debug_shows!(PersonaRegistry: root, limits);
