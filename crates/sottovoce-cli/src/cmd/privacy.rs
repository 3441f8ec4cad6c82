//! What is stored, where, for how long, who could read it and which copies exist: for the owner's page and `sottovoce privacy`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use sottovoce::config::{ConfiguredKey, OpenConversations};
use sottovoce::{ConversationStore, Result, Scope, admin};

use crate::cmd::doctor::key;
use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM, WARN, byte_size, counted, one_line, without_login};
use crate::session::Session;

pub(crate) async fn run(session: &Session) -> Outcome {
    let keys = session.known_keys()?.ok_or_else(|| session.nothing())?;
    let config = session.config()?.clone();
    let open = Arc::new(OpenConversations::new(config, keys, session.clock())?);
    let holdings = Holdings::of(&open).await?;
    if session.json {
        output::json(&holdings)?;
        return Ok(Exit::Done);
    }
    for Fact { about, what, is_warning, commands } in holdings.facts(&open) {
        let style = if is_warning { WARN } else { BOLD };
        output::line(format!("{style}{about}{style:#}"))?;
        output::line(format!("    {}", output::printable(&what)))?;
        for command in commands.iter().flat_map(|commands| commands.lines()) {
            output::line(format!("    {DIM}→ {command}{DIM:#}"))?;
        }
    }
    Ok(Exit::Done)
}

/// Among how many of the newest messages of each conversation people are looked for.
const NEWEST: usize = 256;
/// How many people are named.
const NAMED: usize = 8;

/// A sentence or two about the owner's data.
#[derive(Debug, Serialize)]
pub(crate) struct Fact {
    pub(crate) about: &'static str,
    pub(crate) what: String,
    /// Whether the owner should think about it.
    pub(crate) is_warning: bool,
    /// Commands, one a line.
    pub(crate) commands: Option<String>,
}

/// What a store holds, and where.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Holdings {
    pub(crate) conversations: usize,
    /// Conversations that cannot be read. They are counted in nothing else.
    pub(crate) unreadable: usize,
    pub(crate) messages: u64,
    /// What was found wrong among the newest messages.
    pub(crate) findings: usize,
    pub(crate) artifacts: usize,
    pub(crate) snapshots: usize,
    /// Whoever has a conversation of their own, or spoke lately.
    pub(crate) people: BTreeSet<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) folder: PathBuf,
    /// Of the whole folder.
    pub(crate) bytes: u64,
    /// How many conversations have limits or expire.
    pub(crate) limited: usize,
    /// When the first of them expires.
    pub(crate) next_expiry: Option<Timestamp>,
    pub(crate) key: KeyPlace,
    pub(crate) backup_folder: PathBuf,
    pub(crate) backups: usize,
    /// The folder, server or team that conversations are shared with.
    pub(crate) shared_with: Vec<String>,
    pub(crate) seal: Option<Seal>,
}

/// What opens the store.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum KeyPlace {
    #[default]
    Passphrase,
    /// The setting that gives it.
    Setting(String),
    File {
        path: PathBuf,
        on_disk_of_store: bool,
        others_may_read: bool,
    },
}

/// The newest message, as its sealed file was read a moment ago.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Seal {
    pub(crate) scope: String,
    pub(crate) seq: u64,
    pub(crate) bytes: u64,
    pub(crate) key_id: Option<String>,
    pub(crate) broken: Option<String>,
}

impl Holdings {
    /// Looks at every conversation, and proves the seal of the newest message.
    pub(crate) async fn of(open: &Arc<OpenConversations>) -> Result<Self> {
        let config = open.config();
        let folder = config.storage_root()?;
        let backup_folder = open.contexts().backup_folder().to_owned();
        let key = match &config.key {
            ConfiguredKey::Secret { from, .. } => KeyPlace::Setting(from.clone()),
            _ => KeyPlace::of_file(config.key_file()?, &folder),
        };
        let (bytes, backups) = (size_of(&folder), files_in(&backup_folder));
        let shared_with = shared_with(open).await;
        let mut holdings =
            Self { folder, bytes, key, backup_folder, backups, shared_with, ..Self::default() };
        let mut newest = None;
        for scope in admin::scopes(&holdings.folder)? {
            match holdings.add(open, &scope).await {
                Ok(last) if last.is_some() && last > newest => {
                    newest = last;
                    holdings.seal = seal(open, &scope).await?;
                }
                Ok(_) => {}
                Err(_) => holdings.unreadable += 1,
            }
        }
        Ok(holdings)
    }

    /// Adds a conversation. Returns when its last message was said.
    async fn add(&mut self, open: &OpenConversations, scope: &Scope) -> Result<Option<Timestamp>> {
        let store = open.store(scope).await?;
        let (stats, read) = (store.stats().await?, store.read_tail(NEWEST).await?);
        self.findings += read.skipped.len();
        if stats.message_count + stats.hidden == 0 && stats.snapshots + stats.artifacts == 0 {
            return Ok(None);
        }
        self.conversations += 1;
        self.messages += stats.message_count + stats.hidden;
        self.artifacts += stats.artifacts;
        self.snapshots += stats.snapshots;
        self.since = self.since.into_iter().chain(stats.first).min();
        let is_limited = stats.retention.max_messages.is_some() || stats.expires_at.is_some();
        self.limited += usize::from(is_limited);
        self.next_expiry = self.next_expiry.into_iter().chain(stats.expires_at).min();
        let speakers = read.messages.iter().filter_map(|stored| stored.message.speaker());
        speakers.for_each(|speaker| self.name(speaker));
        if let Scope::Dm { user } | Scope::Guild { user, .. } = scope {
            self.name(user);
        }
        Ok(stats.last)
    }

    /// Adds a person. Ann and ann are one.
    fn name(&mut self, person: &str) {
        let same = |known: &String| known.to_lowercase() == person.to_lowercase();
        if !self.people.iter().any(same) {
            self.people.insert(person.to_owned());
        }
    }

    /// The same in sentences.
    pub(crate) fn facts(&self, open: &OpenConversations) -> Vec<Fact> {
        let model = &open.config().language_model.base_url;
        let zone = open.clock().now().time_zone().clone();
        let day = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%-d %B %Y").to_string();
        let fact = |about, what| Fact { about, what, is_warning: false, commands: None };
        let with = |about, what: &str, commands: &str| Fact {
            commands: Some(commands.to_owned()),
            ..fact(about, what.to_owned())
        };
        vec![
            Fact {
                is_warning: self.unreadable + self.findings > 0,
                ..fact("Stored", self.stored(day))
            },
            fact(
                "Where",
                format!(
                    "On this machine, in {}: {}. Your model server, {}, is sent each prompt; nothing else leaves by itself.",
                    self.folder.display(),
                    byte_size(self.bytes),
                    without_login(model)
                ),
            ),
            fact("How long", self.kept(day)),
            self.key.fact(),
            self.seal.as_ref().map_or_else(
                || {
                    fact(
                        "Seal",
                        "There is no readable message whose seal could be tried.".to_owned(),
                    )
                },
                Seal::fact,
            ),
            fact("Copies", self.copies()),
            with(
                "Moving",
                "Two files are enough: a sealed backup, and the key. The last line puts them into a new machine.",
                "sottovoce export backup.sottovoce --sealed --all\nsottovoce key export --to key.backup\nsottovoce restore backup.sottovoce --key-file key.backup",
            ),
            with(
                "Deleting",
                "Everything can go at once, after you have seen what goes. What you exported or shared is not reached by it.",
                "sottovoce forget --everything",
            ),
        ]
    }

    fn stored(&self, day: impl Fn(Timestamp) -> String) -> String {
        let number = |number: usize, what: &str| counted(number as u64, what);
        let mut said = format!(
            "{} in {}",
            output::messages(usize::try_from(self.messages).unwrap_or(usize::MAX)),
            number(self.conversations, "conversation")
        );
        let since = self.since.map(|since| format!(", since {}", day(since)));
        said.extend(since);
        let also = [(self.snapshots, "snapshot"), (self.artifacts, "artifact")];
        said.extend(also.map(|(n, what)| match n {
            0 => String::new(),
            n => format!(", {}", number(n, what)),
        }));
        let named: Vec<String> =
            self.people.iter().take(NAMED).map(|name| one_line(name)).collect();
        if !named.is_empty() {
            let more = self.people.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            said.push_str(&format!("; people: {}{more}", named.join(", ")));
        }
        for (n, what) in [(self.unreadable, "conversation"), (self.findings, "newest record")] {
            if n > 0 {
                said.push_str(&format!("; {} cannot be read, see `verify --all`", number(n, what)));
            }
        }
        said + "."
    }

    fn kept(&self, day: impl Fn(Timestamp) -> String) -> String {
        let ever = self.conversations - self.limited;
        let next = self.next_expiry.map(|at| format!("; the next one expires on {}", day(at)));
        let next = next.unwrap_or_default();
        match (ever, self.limited) {
            (_, 0) => "Until you forget it: nothing here expires.".to_owned(),
            (0, _) => format!("Every conversation has a limit or expires{next}."),
            (ever, limited) => format!(
                "{} until you forget them; {limited} with a limit or an expiry{next}.",
                counted(ever as u64, "conversation")
            ),
        }
    }

    fn copies(&self) -> String {
        let backups = match self.backups {
            0 => "No daily backups.".to_owned(),
            number => format!(
                "{}, sealed under the same key, in {}.",
                counted(number as u64, "daily backup"),
                self.backup_folder.display()
            ),
        };
        let shared = match self.shared_with.is_empty() {
            true => "Shared with no other device and no team.".to_owned(),
            false => format!("Shared: {}.", self.shared_with.join("; ")),
        };
        format!("{backups} {shared} Exports and copies that you made yourself are not known here.")
    }
}

impl KeyPlace {
    fn of_file(path: PathBuf, store: &Path) -> Self {
        let Some(mode) = key::mode(&path) else { return Self::Passphrase };
        let on_disk_of_store = key::is_on_one_disk(&path, store);
        Self::File { path, on_disk_of_store, others_may_read: mode & 0o077 != 0 }
    }

    fn fact(&self) -> Fact {
        let (what, is_warning) = match self {
            Self::Passphrase => (
                "Whoever knows your passphrase. Without it, the disk tells only sizes and times."
                    .to_owned(),
                false,
            ),
            Self::Setting(from) => {
                (format!("Whoever can read the key in {} and this folder.", one_line(from)), false)
            }
            Self::File { path, on_disk_of_store, others_may_read } => {
                let path = path.display();
                let disk = match on_disk_of_store {
                    true => {
                        "The key lies on the same disk as the store: whoever takes the disk reads everything, unless the whole disk is encrypted"
                    }
                    false => {
                        "The key lies on another disk: whoever takes only the store's reads nothing"
                    }
                };
                let others = match others_may_read {
                    true => "Other users of this machine can read the key",
                    false => "Besides you, only this machine's administrator",
                };
                (
                    format!("Whoever has the key file {path}. {others}. {disk}."),
                    *on_disk_of_store || *others_may_read,
                )
            }
        };
        let commands = is_warning.then(|| "sottovoce rekey --to-passphrase".to_owned());
        Fact { about: "Who can read it", what, is_warning, commands }
    }
}

impl Seal {
    fn fact(&self) -> Fact {
        let Self { scope, seq, bytes, key_id, broken } = self;
        let scope = one_line(scope);
        let what = match broken {
            None => format!(
                "Holds: message {seq} of {scope}, the newest one, was read from the disk just now. Its {} are sealed with AES-256-GCM and open only with the key {}.",
                byte_size(*bytes),
                key_id.as_deref().unwrap_or_default()
            ),
            Some(broken) => {
                format!(
                    "Does not open: message {seq} of {scope}: {broken}. See Health or `doctor`."
                )
            }
        };
        Fact { about: "Seal", what, is_warning: broken.is_some(), commands: None }
    }
}

async fn seal(open: &OpenConversations, scope: &Scope) -> Result<Option<Seal>> {
    let store = open.store(scope).await?;
    let Some(newest) = store.read_tail(1).await?.messages.pop() else { return Ok(None) };
    let location = store.locate(&newest).await?;
    Ok(location.map(|location| Seal {
        scope: scope.to_string(),
        seq: newest.seq,
        bytes: location.bytes,
        key_id: location.key_id,
        broken: location.broken.map(|broken| broken.to_string()),
    }))
}

/// The bytes of all files in a folder. What cannot be read counts as nothing.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        Some(if found.is_dir() { size_of(&entry.path()) } else { found.len() })
    });
    sizes.sum()
}

fn files_in(folder: &Path) -> usize {
    fs::read_dir(folder).into_iter().flatten().count()
}

/// The remote and the teams of the store. Asks no server.
#[cfg(feature = "share")]
async fn shared_with(open: &Arc<OpenConversations>) -> Vec<String> {
    use crate::cmd::share;
    let syncer = share::stores::syncer(Arc::clone(open), share::no_remote());
    let mut shared = Vec::new();
    if let Ok(status) = syncer.status().await {
        let devices = counted(status.peers.len() as u64, "other device");
        shared
            .push(format!("with {devices}, through {}", one_line(&without_login(&status.address))));
    }
    for team in share::team::of(open).status().await.into_iter().flatten() {
        let conversations = counted(team.conversations.len() as u64, "conversation");
        shared.push(one_line(&format!("{conversations} with the team {}", team.name)));
    }
    shared
}

#[cfg(not(feature = "share"))]
async fn shared_with(_: &Arc<OpenConversations>) -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_never_expires_is_kept_until_it_is_forgotten_and_what_does_says_when() {
        let day = |at: Timestamp| at.strftime("%F").to_string();
        let holdings = Holdings { conversations: 3, ..Holdings::default() };
        assert_eq!(holdings.kept(day), "Until you forget it: nothing here expires.");
        let next_expiry = Some("2027-01-02T00:00:00Z".parse().unwrap());
        let some = Holdings { limited: 1, next_expiry, ..holdings };
        let kept = some.kept(day);
        assert!(kept.contains("2 conversations until you forget them"), "{kept}");
        assert!(kept.contains("2027-01-02"), "{kept}");
    }

    #[test]
    fn a_key_beside_the_store_is_a_warning_and_one_elsewhere_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let fact = KeyPlace::of_file(file.clone(), folder.path()).fact();
        assert!(fact.is_warning && fact.what.contains("whoever takes the disk"), "{}", fact.what);
        let elsewhere =
            KeyPlace::File { path: file, on_disk_of_store: false, others_may_read: false };
        assert!(!elsewhere.fact().is_warning);
        let without = KeyPlace::of_file(folder.path().join("none"), folder.path());
        assert!(without.fact().what.contains("passphrase"));
    }

    #[test]
    fn a_person_is_named_once_in_whatever_letters() {
        let mut holdings = Holdings::default();
        for name in ["Ann", "ann", "Ben"] {
            holdings.name(name);
        }
        assert_eq!(holdings.people.len(), 2);
    }
}
