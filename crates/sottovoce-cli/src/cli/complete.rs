//! Shell completion of existing scopes, contexts, threads and models.
//!
//! The user waits for it after pressing the tab key. It therefore takes a moment at most, asks for no passphrase and
//! reports no errors.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clap::CommandFactory;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate};
use sottovoce::admin::{StoreKey, scopes as scopes_of, store_keys};
use sottovoce::{Config, ConversationStore, EncryptionKey, Scope, SystemClock};

use crate::cli::{Cli, whose};

/// The environment variable by which a shell's script asks; its value is the shell's name.
const VARIABLE: &str = "SOTTOVOCE_COMPLETE";

/// The longest time that a shell waits.
const MOMENT: Duration = Duration::from_millis(700);

/// How many newest messages are searched for threads.
const NEWEST: usize = 1000;

/// A descriptor can be read only once, by the command itself.
const KEY_FD: &str = "SOTTOVOCE__CONTEXT__KEYFD";

/// Answers a shell's request and ends the program, if there is one.
pub(crate) fn answer() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// The completion script of a shell; `None` for an unknown shell.
pub(crate) fn script(shell: &str) -> std::io::Result<Option<Vec<u8>>> {
    let name = "sottovoce";
    let mut script = Vec::new();
    match Shells::builtins().completer(shell) {
        Some(shell) => shell.write_registration(VARIABLE, name, name, name, &mut script)?,
        None => return Ok(None),
    }
    Ok(Some(script))
}

/// Every existing conversation.
pub(crate) fn scopes() -> Vec<CompletionCandidate> {
    within_a_moment(|config| async move {
        let scopes = scopes_of(&config.storage_root().ok()?).ok()?;
        let all = BTreeSet::from_iter(scopes.into_iter().chain([Scope::Default]));
        Some(all.into_iter().map(|scope| CompletionCandidate::new(scope.to_string())).collect())
    })
}

/// Every open context: its name, or its id if the name would need quotes.
pub(crate) fn contexts() -> Vec<CompletionCandidate> {
    within_a_moment(|config| async move {
        let registry = config.contexts(keys(&config)?, Arc::new(SystemClock)).ok()?;
        let mut listed = registry.list().await.ok()?.contexts;
        listed.retain(sottovoce::persona::PersonaConversation::is_open);
        let candidate = |context: sottovoce::persona::PersonaConversation| {
            let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
            match context.name.chars().all(plain) {
                true => CompletionCandidate::new(context.name).help(Some(context.id.into())),
                false => CompletionCandidate::new(context.id).help(Some(context.name.into())),
            }
        };
        Some(listed.into_iter().map(candidate).collect())
    })
}

/// The threads of the newest messages in the conversation that the line names so far.
pub(crate) fn threads() -> Vec<CompletionCandidate> {
    within_a_moment(|config| async move {
        let keys = keys(&config)?;
        let named = match given("--context") {
            Some(name) => {
                let registry = config.contexts(keys.clone(), Arc::new(SystemClock)).ok()?;
                Some(Scope::Named { id: registry.find(&name).await.ok()?.id })
            }
            None => whose::at_home(given("--user"), given("--room")).ok()?,
        };
        let scope = match given("--scope") {
            Some(scope) => whose::scope(&scope).ok()?,
            None => named.unwrap_or_default(),
        };
        let store = config.open_store_with(keys, scope, Arc::new(SystemClock)).await.ok()?;
        let newest = store.read_tail(NEWEST).await.ok()?;
        let ids = newest.messages.iter().filter_map(|stored| stored.message.thread_id.clone());
        let ids = BTreeSet::from_iter(ids);
        Some(ids.into_iter().map(CompletionCandidate::new).collect())
    })
}

/// The models on the server.
pub(crate) fn models() -> Vec<CompletionCandidate> {
    within_a_moment(|config| async move {
        let models = config.server().ok()?.models().await.ok()?;
        Some(models.into_iter().map(|(model, _)| CompletionCandidate::new(model.name)).collect())
    })
}

/// The keys that are available without asking the user, and without deriving one from a passphrase.
fn keys(config: &Config) -> Option<Vec<Arc<EncryptionKey>>> {
    let known = store_keys(&config.storage_root().ok()?, &[]).ok()?;
    if known.is_empty() || known.iter().any(StoreKey::is_of_passphrase) {
        return None;
    }
    config.encryption_keys().ok()
}

/// Runs a search, or returns nothing after a moment. A search that is still running ends with the program.
fn within_a_moment<F>(find: impl FnOnce(Config) -> F + Send + 'static) -> Vec<CompletionCandidate>
where
    F: Future<Output = Option<Vec<CompletionCandidate>>>,
{
    let (send, found) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let file = given("--config").map(std::path::PathBuf::from);
        let (Ok(runtime), Ok(config)) = (runtime, Config::load_with(file.as_deref(), variables()))
        else {
            return;
        };
        let _ = send.send(runtime.block_on(find(config)).unwrap_or_default());
    });
    found.recv_timeout(MOMENT).unwrap_or_default()
}

fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let is_fd =
        |name: &OsString| name.to_str().is_some_and(|name| name.eq_ignore_ascii_case(KEY_FD));
    std::env::vars_os().filter(move |(name, _)| !is_fd(name))
}

/// The value that the typed line gives an option so far.
fn given(option: &str) -> Option<String> {
    let words: Vec<String> =
        std::env::args_os().skip(1).filter_map(|word| word.into_string().ok()).collect();
    let after = words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    let joined = || words.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    after.map(String::as_str).or_else(joined).map(str::to_owned)
}
