//! `sottovoce doctor --fix`: fixes problems of the report.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use sottovoce::Config;
use sottovoce::admin::move_store;

use crate::cmd::doctor::{Line, Report};
use crate::cmd::repair;
use crate::exit::Failure;
use crate::output::{self, object};
use crate::own_settings;
use crate::session::{Session, announce_key};

/// The fix for a line of the report.
#[derive(Debug)]
pub(super) enum Fix {
    /// None, with the reason.
    ByHand(String),
    /// Sets the permissions of a file or folder.
    Mode(PathBuf, u32),
    /// Creates the key file.
    MakeKey,
    /// Opens the store, which copies the salt of its passphrase.
    CopySalt,
    /// Copies a lost key list back.
    CopyVault { from: PathBuf, to: PathBuf },
    /// Changes one of the user's own settings.
    Set(&'static str, Value),
    /// Moves the store to another folder, and updates the settings.
    MoveStore(PathBuf),
    /// Deletes the rest of a store that was moved, or of an import that was killed.
    Remove(PathBuf),
    /// Downloads a model.
    Pull(String),
    /// Repairs the store.
    Repair,
}

impl Fix {
    pub(super) fn by_hand(why: impl Into<String>) -> Self {
        Self::ByHand(why.into())
    }

    /// A fix that sets one of the user's own settings, if the setting comes from there.
    pub(super) fn set(config: &Config, key: &'static str, value: impl Into<Value>) -> Self {
        let origin = config.settings().iter().find(|setting| setting.key == key);
        let origin = origin.map_or("default", |setting| &setting.origin);
        let own = config.file.as_ref().map(|file| file.display().to_string());
        match origin == "default" || own.as_deref() == Some(origin) {
            true => Self::Set(key, value.into()),
            false => {
                Self::ByHand(format!("{key} is set by {origin}, which overrides your own file"))
            }
        }
    }

    /// The order of the fix, if it is one: a folder before its contents, and moving the store last.
    pub(super) fn rank(&self) -> Option<u8> {
        match self {
            Self::ByHand(_) => None,
            Self::Mode(..) => Some(0),
            Self::MoveStore(_) => Some(2),
            _ => Some(1),
        }
    }

    /// Whether later checks must load the settings again.
    fn changes_settings(&self) -> bool {
        matches!(self, Self::Set(..) | Self::MoveStore(_))
    }

    /// The question before the fix.
    fn question(&self, config: &Config) -> String {
        let own = || config.own_file().unwrap_or_default().display().to_string();
        match self {
            Self::ByHand(why) => why.clone(),
            Self::Mode(path, mode) => format!("Set the mode of {} to {mode:o}?", path.display()),
            Self::MakeKey => "Create the key file?".to_owned(),
            Self::CopySalt => "Copy the salt beside the key file?".to_owned(),
            Self::CopyVault { from, to } => {
                format!("Copy {} to {}?", from.display(), to.display())
            }
            Self::Set(key, value) => format!("Set {key} to {value} in {}?", own()),
            Self::MoveStore(to) => format!(
                "Move the store to {} and set Context.StorageRoot in {}? Stop other programs that use it first.",
                to.display(),
                own()
            ),
            Self::Remove(path) => format!("Delete {} for ever?", path.display()),
            Self::Pull(model) => format!("Run `ollama pull {model}`?"),
            Self::Repair => "Run `sottovoce repair`?".to_owned(),
        }
    }

    async fn apply(&self, session: &Session, config: &Config) -> Result<(), Failure> {
        match self {
            Self::ByHand(_) => {}
            Self::Mode(path, mode) => {
                fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
            }
            Self::MakeKey => {
                if let Some(file) = config.make_key_file()? {
                    announce_key(&file);
                }
            }
            Self::CopySalt => drop(session.open().await?),
            Self::CopyVault { from, to } => {
                let vault = fs::read(from)?;
                let mut options = OpenOptions::new();
                let mut copy = options.write(true).create_new(true).mode(0o600).open(to)?;
                io::Write::write_all(&mut copy, &vault)?;
                copy.sync_all()?;
            }
            Self::Set(key, value) => drop(own_settings::set(config, key, Some(value))?),
            Self::MoveStore(to) => {
                let (from, place) = (config.storage_root()?, to.display().to_string());
                let switch = || {
                    let place = Value::from(place);
                    own_settings::set(config, "Context.StorageRoot", Some(&place)).map(drop)
                };
                let moved = move_store(&from, to, switch)?;
                let files = output::counted(moved.files as u64, "file");
                output::note(&format!("the store is in {} now, {files}", to.display()));
                if let Some(left) = moved.left {
                    output::warning(&format!(
                        "{} still exists; look at it before you delete it",
                        left.display()
                    ));
                }
            }
            Self::Remove(path) => fs::remove_dir_all(path)?,
            Self::Pull(model) => {
                let host = &config.language_model.base_url;
                let pulled =
                    Command::new("ollama").args(["pull", model]).env("OLLAMA_HOST", host).status();
                if !pulled.is_ok_and(|status| status.success()) {
                    let what = format!("`ollama pull {model}` did not succeed");
                    return Err(Failure::input(what, "run it on the server's machine"));
                }
            }
            Self::Repair => drop(repair::run(session, repair::Args::without_asking()).await?),
        }
        Ok(())
    }
}

/// The result of a fix.
#[derive(Default)]
pub(super) struct Done {
    pub(super) anything: bool,
    pub(super) settings: bool,
}

/// Goes through the report: asks for each fix and runs it, and explains why the others cannot be fixed.
pub(super) async fn all(
    session: &Session,
    config: &Config,
    report: &Report,
    yes: bool,
) -> Result<Done, Failure> {
    let mut lines: Vec<(&Line, &Fix)> =
        report.0.iter().filter_map(|line| Some((line, line.fix.as_ref()?))).collect();
    lines.sort_by_key(|(_, fix)| fix.rank());
    if !yes && lines.iter().any(|(_, fix)| fix.rank().is_some()) {
        session.check_attended("change the set-up")?;
    }
    let mut done = Done::default();
    for (line, fix) in lines {
        let why = match fix {
            Fix::ByHand(why) => Some(why.clone()),
            fix if !yes && !output::confirmed(&fix.question(config))? => {
                Some("not wanted".to_owned())
            }
            fix => match fix.apply(session, config).await {
                Ok(()) => None,
                Err(failure) => {
                    output::failure(&failure);
                    Some("it failed".to_owned())
                }
            },
        };
        done.anything |= why.is_none();
        done.settings |= why.is_none() && fix.changes_settings();
        if session.json {
            let row = object!("about": line.about, "fixed": why.is_none());
            output::json(&row.maybe("why", why.as_deref()))?;
        } else {
            let what = output::one_line(&line.what);
            match why {
                None => output::note(&format!("fixed: {what}")),
                Some(why) => output::note(&format!("not fixed: {what} ({why})")),
            }
        }
    }
    Ok(done)
}
