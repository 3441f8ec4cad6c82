//! The start of every command: configuration, keys and store.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use sottovoce::config::{ConfiguredKey, read_fd};
use sottovoce::persona::{PersonaConversation, PersonaFailure, PersonaRegistry, Preset};
use sottovoce::{
    Clock, Config, Conversation, ConversationStore, EncryptionKey, Error, FileConversationStore,
    Scope, StoreOptions, SystemClock,
};
use zeroize::Zeroizing;

use crate::exit::{Exit, Failure, Outcome};
use crate::output::pager::Pager;
use crate::output::table::{self, Cell};
use crate::{output, secret};

#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) no_pager: bool,
    pub(crate) passphrase_fd: Option<u32>,
    pub(crate) scope: Scope,
    pub(crate) thread: Option<String>,
    /// The model to ask instead of the configured one.
    pub(crate) model: Option<String>,
    /// The configuration, cached after the first read, because the source of a key may be readable only once.
    pub(crate) loaded: OnceLock<Config>,
    /// Whether nobody is at the terminal, so that nothing is asked there.
    pub(crate) unattended: bool,
    /// The keys that the user was asked for.
    pub(crate) asked: Arc<OnceLock<Vec<Arc<EncryptionKey>>>>,
}

impl Session {
    /// The configuration. Warns once about ignored settings of the file in the current folder.
    pub(crate) fn config(&self) -> Result<&Config, Failure> {
        let is_new = self.loaded.get().is_none();
        let config = self.load()?;
        if is_new && let Some(left_out) = left_out(config) {
            output::note(&left_out);
        }
        if is_new && let Some(zone) = SystemClock::unknown_zone() {
            output::note(&format!(
                "there is no time zone {zone:?}, which TZ names, so times are in UTC"
            ));
        }
        Ok(config)
    }

    pub(crate) fn load(&self) -> sottovoce::Result<&Config> {
        if let Some(config) = self.loaded.get() {
            return Ok(config);
        }
        let config = self.read_config()?;
        Ok(self.loaded.get_or_init(|| config))
    }

    /// The same session with other settings.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Config)) -> Result<Self, Failure> {
        let mut config = self.config()?.clone();
        change(&mut config);
        Ok(Self { loaded: config.into(), ..self.clone() })
    }

    /// The answer of a command that needs a store before the first use.
    pub(crate) fn nothing(&self) -> Failure {
        match self.config().and_then(|config| Ok(config.storage_root()?)) {
            Ok(folder) => Failure::Nothing { folder },
            Err(failure) => failure,
        }
    }

    /// The conversations that a command is about: that of the session, or all.
    pub(crate) fn scopes(&self, all: bool) -> Result<Vec<Scope>, Failure> {
        match all {
            true => Ok(sottovoce::admin::scopes(&self.config()?.storage_root()?)?),
            false => Ok(vec![self.scope.clone()]),
        }
    }

    fn read_config(&self) -> sottovoce::Result<Config> {
        let mut config = Config::load(self.config_file.as_deref())?;
        if let Some(model) = &self.model {
            config.language_model.model.clone_from(model);
        }
        let Some(fd) = self.passphrase_fd else {
            return Ok(config);
        };
        let option = "--passphrase-fd";
        if let ConfiguredKey::Secret { from, .. } = &config.key {
            let reason = format!("gives a key, and so does {from}; keep one of them");
            return Err(Error::Config { place: option.to_owned(), reason });
        }
        let text = without_line_end(&read_fd(fd)?);
        let short = secret::is_short(&text);
        let key = Arc::new(EncryptionKey::from_passphrase(text)?);
        config.key = ConfiguredKey::Secret { key, short, from: option.to_owned() };
        Ok(config)
    }

    /// The keys. Asks for a passphrase if the store needs one.
    pub(crate) fn keys(&self) -> Result<Vec<Arc<EncryptionKey>>, Failure> {
        let config = self.config()?;
        match config.encryption_keys() {
            Err(needed @ Error::PassphraseNeeded { .. }) => {
                if let Some(keys) = self.asked.get() {
                    return Ok(keys.clone());
                }
                if self.unattended {
                    return Err(needed.into());
                }
                let what = format!("Passphrase of {}", config.storage_root()?.display());
                let keys =
                    config.keys_of_passphrase(secret::ask_passphrase(&what)?.ok_or(needed)?)?;
                Ok(self.asked.get_or_init(|| keys).clone())
            }
            keys => Ok(keys?),
        }
    }

    /// The keys; `None` before the first use.
    pub(crate) fn known_keys(&self) -> Result<Option<Vec<Arc<EncryptionKey>>>, Failure> {
        match self.keys() {
            Err(Failure::Library(Error::NoKey | Error::PlaceholderKey)) => Ok(None),
            keys => keys.map(Some),
        }
    }

    /// Opens the store with the available keys.
    pub(crate) async fn open(&self) -> Result<FileConversationStore, Failure> {
        self.open_scope(self.scope.clone()).await
    }

    /// Opens another conversation than the command's.
    pub(crate) async fn open_scope(&self, scope: Scope) -> Result<FileConversationStore, Failure> {
        Ok(self.config()?.open_store_with(self.keys()?, scope, self.clock()).await?)
    }

    /// [`conversation`](Self::conversation) for writing, optionally without the history so far.
    pub(crate) async fn conversation_from(
        &self,
        store: Arc<FileConversationStore>,
        clean: bool,
    ) -> Result<Conversation, Failure> {
        self.check_open(&store).await?;
        let conversation = self.conversation(store)?;
        Ok(if clean { conversation.starting_clean().await? } else { conversation })
    }

    /// The conversation in a store, in the command's thread.
    pub(crate) fn conversation(
        &self,
        store: Arc<FileConversationStore>,
    ) -> Result<Conversation, Failure> {
        let conversation = self.config()?.conversation(store)?;
        Ok(match &self.thread {
            Some(thread) => conversation.in_thread(thread),
            None => conversation,
        })
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// Refuses a permanent action if there is no terminal to confirm it.
    pub(crate) fn check_attended(&self, deed: &str) -> Result<(), Failure> {
        if !self.json && io::stdin().is_terminal() {
            return Ok(());
        }
        Err(Failure::input(format!("this would {deed}"), "say --yes if that is what you want"))
    }

    /// Whether the user agrees to a deed, or has said --yes. `show` shows what it is about. Notes `otherwise` if not.
    pub(crate) async fn agrees(
        &self,
        yes: bool,
        deed: &str,
        question: &str,
        otherwise: &str,
        show: impl AsyncFnOnce() -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        if yes {
            return Ok(true);
        }
        self.check_attended(deed)?;
        show().await?;
        let agrees = output::confirmed(question)?;
        if !agrees {
            output::note(otherwise);
        }
        Ok(agrees)
    }

    /// Shows a result: one JSON object for programs, a note for people.
    pub(crate) fn tell(&self, row: impl Serialize, words: impl FnOnce() -> String) -> Outcome {
        match self.json {
            true => output::json(&row)?,
            false => output::note(&words()),
        }
        Ok(Exit::Done)
    }

    /// A pager for a long list, if people read it on a terminal. To be started when nothing is left to be asked.
    pub(crate) fn pager(&self) -> io::Result<Option<Pager>> {
        if self.json || self.no_pager { Ok(None) } else { Pager::start() }
    }

    /// Lists things: one JSON object a line for programs, a table for people.
    pub(crate) fn list<T, R: Serialize, const N: usize>(
        &self,
        all: &[T],
        row: impl Fn(&T) -> R,
        names: [&str; N],
        cells: impl Fn(&T) -> [Cell; N],
    ) -> io::Result<()> {
        match self.json {
            true => all.iter().try_for_each(|one| output::json(&row(one))),
            false if all.is_empty() => Ok(()),
            false => table::show(names, all.iter().map(cells).collect()),
        }
    }

    /// Opens the store for reading. Never creates a key.
    pub(crate) async fn store(&self) -> Result<FileConversationStore, Failure> {
        match self.open().await {
            Err(Failure::Library(Error::NoKey | Error::PlaceholderKey)) => Err(self.nothing()),
            other => other,
        }
    }

    /// Opens the store, or an empty one in memory before the first use, because reading must not create a key.
    pub(crate) async fn store_or_empty(&self) -> Result<Arc<FileConversationStore>, Failure> {
        Ok(Arc::new(self.stores_or_empty()?.open(self.scope.clone()).await?))
    }

    /// Opens the store for writing. Creates the key file on first use.
    pub(crate) async fn store_or_make(&self) -> Result<FileConversationStore, Failure> {
        self.stores_or_make()?.open(self.scope.clone()).await
    }

    /// All conversations; empty before the first use.
    pub(crate) fn stores_or_empty(&self) -> Result<Stores<'_>, Failure> {
        let keys = self.known_keys()?.unwrap_or_default();
        Ok(Stores { config: self.config()?, keys, clock: self.clock() })
    }

    /// All conversations for writing. Creates the key file on first use.
    pub(crate) fn stores_or_make(&self) -> Result<Stores<'_>, Failure> {
        let config = self.config()?;
        let keys = match self.known_keys()? {
            Some(keys) => keys,
            None => {
                match config.make_key_file()? {
                    Some(file) => {
                        announce_key(&file);
                        announce_place(config)?;
                    }
                    None => announce_salt(&config.salt_folder()?),
                }
                self.keys()?
            }
        };
        Ok(Stores { config, keys, clock: self.clock() })
    }
}

/// The conversations of a store, with keys that are read once.
#[derive(Debug)]
pub(crate) struct Stores<'a> {
    config: &'a Config,
    /// Empty before the first use.
    keys: Vec<Arc<EncryptionKey>>,
    clock: Arc<dyn Clock>,
}

impl Stores<'_> {
    /// Whether the store does not exist yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn keys(&self) -> Vec<Arc<EncryptionKey>> {
        self.keys.clone()
    }

    /// The options for reading what all conversations share.
    pub(crate) fn options(&self) -> Result<StoreOptions, Failure> {
        let mut keys = self.keys.iter().cloned();
        let first = match keys.next() {
            Some(first) => StoreOptions::new(first),
            None => StoreOptions::new(EncryptionKey::generate()?),
        };
        let options = keys.fold(first, StoreOptions::also_with);
        Ok(options.clock(Arc::clone(&self.clock)))
    }

    /// Opens one conversation; in memory if there are no keys yet.
    pub(crate) async fn open(&self, scope: Scope) -> Result<FileConversationStore, Failure> {
        if self.keys.is_empty() {
            let options = StoreOptions::new(EncryptionKey::generate()?).scope(scope);
            return Ok(options.open_in_memory().await?);
        }
        let clock = Arc::clone(&self.clock);
        Ok(self.config.open_store_with(self.keys.clone(), scope, clock).await?)
    }
}

/// A note about ignored settings of the file in the current folder, and where they belong.
pub(crate) fn left_out(config: &Config) -> Option<String> {
    let keys: Vec<&str> = config.left_out().iter().map(|setting| setting.key).collect();
    let file = config.local_file.as_ref().filter(|_| !keys.is_empty())?;
    let own = config.own_file().unwrap_or_default();
    Some(format!(
        "{} in this folder is not followed in {}; that belongs into {}, the environment or a file given with --config",
        file.display(),
        keys.join(", "),
        own.display()
    ))
}

pub(crate) fn announce_key(file: &std::path::Path) {
    output::note(&format!("made the key file {}", file.display()));
    output::note("back it up somewhere safe: without it nobody can read what is stored");
}

/// Says what becomes of a store in a cache folder, whose place the programs that clean up and back up choose by name.
fn announce_place(config: &Config) -> Result<(), Failure> {
    let root = config.storage_root()?;
    if config.context.storage_root.is_none() {
        output::note(&format!(
            "the store is in {}, which clean-up programs may empty and backups leave out: `sottovoce doctor --fix` moves it",
            root.display()
        ));
    }
    Ok(())
}

pub(crate) fn announce_salt(folder: &std::path::Path) {
    output::note("the store's key is made of the passphrase and of a salt in its file `vault`");
    output::note(&format!("a copy of the salt is in {}: back it up too", folder.display()));
}

/// A line without its line ending.
pub(crate) fn without_line_end(text: &str) -> Zeroizing<String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    Zeroizing::new(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// A command's text: its arguments, or standard input if there are none and it is a pipe. Never blank.
pub(crate) fn words(arguments: &[String]) -> Result<String, Failure> {
    let text = if arguments.is_empty() || arguments == ["-"] {
        piped(arguments.is_empty())?
    } else {
        arguments.join(" ")
    };
    if text.trim().is_empty() {
        return Err(Failure::input("the text is empty", "give some words"));
    }
    Ok(text)
}

fn piped(only_a_pipe: bool) -> Result<String, Failure> {
    let mut input = io::stdin();
    if only_a_pipe && input.is_terminal() {
        return Err(Failure::input("there is no text", "give it as an argument or through a pipe"));
    }
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::input("the text is not UTF-8", "convert it first, for example with iconv")
        }
        _ => error.into(),
    })?;
    text.truncate(text.trim_end().len());
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

impl Session {
    /// The contexts for reading; `None` before the first use, because reading must not create a key.
    pub(crate) fn contexts(&self) -> Result<Option<PersonaRegistry>, Failure> {
        let stores = self.stores_or_empty()?;
        match stores.is_empty() {
            true => Ok(None),
            false => Ok(Some(stores.config.contexts(stores.keys(), self.clock())?)),
        }
    }

    /// The contexts for writing. Creates the key file on first use.
    pub(crate) fn contexts_or_make(&self) -> Result<PersonaRegistry, Failure> {
        let stores = self.stores_or_make()?;
        Ok(stores.config.contexts(stores.keys, stores.clock)?)
    }

    /// Finds a context by id or name. Returns its registry too.
    pub(crate) async fn find_context(
        &self,
        id_or_name: &str,
    ) -> Result<(PersonaRegistry, PersonaConversation), Failure> {
        let none = PersonaFailure::NoSuchConversation { known: Vec::new() };
        let contexts = self.contexts()?.ok_or(Error::Persona(none))?;
        let found = contexts.find(id_or_name).await?;
        Ok((contexts, found))
    }

    /// The scope of a context, by id or name.
    pub(crate) async fn scope_of_context(&self, id_or_name: &str) -> Result<Scope, Failure> {
        let (_, found) = self.find_context(id_or_name).await?;
        Ok(Scope::Named { id: found.id })
    }

    /// The context of a conversation, if it is one.
    pub(crate) async fn context_of(
        &self,
        store: &FileConversationStore,
    ) -> Result<Option<PersonaConversation>, Failure> {
        let Some((contexts, id)) = self.registered(store).await? else { return Ok(None) };
        Ok(Some(contexts.get(id).await?))
    }

    /// Fails if the context is expired, deleted or full, however it was selected.
    pub(crate) async fn check_open(&self, store: &FileConversationStore) -> Result<(), Failure> {
        if let Some((contexts, id)) = self.registered(store).await? {
            contexts.open(id).await?;
        }
        Ok(())
    }

    /// The registry, and the id of the conversation's context.
    async fn registered<'a>(
        &self,
        store: &'a FileConversationStore,
    ) -> Result<Option<(PersonaRegistry, &'a str)>, Failure> {
        let Scope::Named { id } = &**store.scope() else { return Ok(None) };
        if store.profile().await?.assigned_persona.is_none() {
            return Ok(None);
        }
        Ok(self.contexts()?.map(|contexts| (contexts, id.as_str())))
    }

    /// All presets; before the first use, the built-in ones.
    pub(crate) async fn presets(&self) -> Result<Vec<Preset>, Failure> {
        match self.contexts()? {
            Some(contexts) => Ok(contexts.presets().await?),
            None => Ok(Preset::all_built_in()),
        }
    }
}
