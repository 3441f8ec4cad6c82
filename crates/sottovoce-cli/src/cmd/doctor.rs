//! `sottovoce doctor`

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use sottovoce::config::ConfiguredKey;
use sottovoce::{Config, ConversationStore, EncryptionKey, Error, store_exists};

use crate::exit::{Exit, Outcome};
use crate::output::{self, BAD, DIM, GOOD, WARN};
use crate::session::Session;

/// How a matter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    Warn,
    Bad,
}

/// One line of the doctor's report.
#[derive(Debug, Serialize)]
struct Line {
    about: &'static str,
    state: State,
    what: String,
    mend: Option<String>,
}

#[derive(Default)]
struct Report(Vec<Line>);

impl Report {
    fn good(&mut self, about: &'static str, what: impl Into<String>) {
        self.0.push(Line { about, state: State::Good, what: what.into(), mend: None });
    }

    fn warn(&mut self, about: &'static str, what: impl Into<String>, mend: impl Into<String>) {
        let mend = Some(mend.into());
        self.0.push(Line { about, state: State::Warn, what: what.into(), mend });
    }

    fn bad(&mut self, about: &'static str, what: impl Into<String>, mend: impl Into<String>) {
        let mend = Some(mend.into());
        self.0.push(Line { about, state: State::Bad, what: what.into(), mend });
    }

    fn error(&mut self, about: &'static str, error: &Error) {
        self.bad(about, error.to_string(), error.help());
    }
}

pub(crate) async fn run(session: &Session) -> Outcome {
    let mut report = Report::default();
    match Config::load(session.config_file.as_deref()) {
        Err(error) => report.error("config", &error),
        Ok(config) => {
            match &config.file {
                Some(file) => report.good("config", file.display().to_string()),
                None => report.good("config", "no file; the defaults and the environment hold"),
            }
            match (config.storage_root(), config.key_file()) {
                (Ok(root), Ok(key_file)) => {
                    key(&mut report, &config, &key_file, &root);
                    folder(&mut report, &config, &root);
                    store(&mut report, session, &config).await;
                }
                (Err(error), _) | (_, Err(error)) => report.error("folders", &error),
            }
        }
    }
    show(session, &report)?;
    let bad = report.0.iter().any(|line| line.state == State::Bad);
    Ok(if bad { Exit::Found } else { Exit::Done })
}

fn show(session: &Session, report: &Report) -> std::io::Result<()> {
    for line in &report.0 {
        if session.json {
            output::json(line)?;
            continue;
        }
        let (style, word) = match line.state {
            State::Good => (GOOD, "good"),
            State::Warn => (WARN, "warn"),
            State::Bad => (BAD, "bad "),
        };
        output::line(format!("{style}{word}{style:#}  {:<7} {}", line.about, line.what))?;
        if let Some(mend) = &line.mend {
            output::line(format!("              {DIM}→ {mend}{DIM:#}"))?;
        }
    }
    Ok(())
}

fn key(report: &mut Report, config: &Config, file: &Path, root: &Path) {
    let path = file.display();
    match &config.key {
        ConfiguredKey::Secret { short: true, .. } => report.warn(
            "key",
            "the key string has fewer than 20 characters and may be guessed from a stolen disk",
            "use a long random one for a new store, or no string at all and `sottovoce init`",
        ),
        ConfiguredKey::Secret { .. } => report.good("key", "from the configuration"),
        _ => match EncryptionKey::read_file(file) {
            Ok(Some(_)) => match mode(file) {
                Some(mode) if mode & 0o077 != 0 => report.bad(
                    "key",
                    format!("other users may read the key file {path} (mode {mode:03o})"),
                    format!("chmod 600 '{path}'"),
                ),
                _ => report.good("key", format!("{path}; keep a copy away from this machine")),
            },
            Ok(None) if store_exists(root).unwrap_or(true) => report.bad(
                "key",
                format!("the store in {} has lost its key file {path}", root.display()),
                format!("cp YOUR-BACKUP '{path}'"),
            ),
            Ok(None) => report.warn("key", "there is none yet", "sottovoce init"),
            Err(error) => report.error("key", &error),
        },
    }
}

fn folder(report: &mut Report, config: &Config, root: &Path) {
    let path = root.display();
    match std::fs::symlink_metadata(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report.good("folder", format!("{path} will be made at the first message"));
        }
        Err(error) => report.bad("folder", format!("{path}: {error}"), format!("ls -ld '{path}'")),
        Ok(found) if !found.is_dir() => report.bad(
            "folder",
            format!("{path} is not a folder, or a link to one"),
            format!("ls -ld '{path}', then point Context.StorageRoot at the folder itself"),
        ),
        Ok(found) => {
            let me = std::fs::metadata("/proc/self").map(|me| me.uid()).ok();
            if me.is_some_and(|me| me != found.uid()) {
                report.warn(
                    "folder",
                    format!("{path} belongs to another user"),
                    format!("chown -R \"$USER\" '{path}'"),
                );
            }
            let mode = found.permissions().mode() & 0o777;
            if mode & 0o077 == 0 {
                report.good("folder", path.to_string());
            } else {
                report.bad(
                    "folder",
                    format!("other users may look into {path} (mode {mode:03o})"),
                    format!("chmod 700 '{path}'"),
                );
            }
        }
    }
    if config.context.storage_root.is_none() || path.to_string().contains("/.cache/") {
        report.warn(
            "cache",
            "the store lies in a cache folder, which clean-up programs may empty",
            format!(
                "mkdir -p ~/.local/share/sottovoce && mv '{path}' ~/.local/share/sottovoce/ && \
                 set Context.StorageRoot to that folder"
            ),
        );
    }
}

async fn store(report: &mut Report, session: &Session, config: &Config) {
    let now = session.clock().now().timestamp();
    // Before the format existed no clock can have been right.
    if now < jiff::Timestamp::from_second(1_735_689_600).unwrap_or_default() {
        report.bad("clock", format!("the clock says {now}"), "timedatectl set-ntp true");
    }
    let store = match config.open_store(session.clock()).await {
        Ok(store) => store,
        // Without a key there is nothing to look into, and the key's own line has said so.
        Err(
            Error::NoKey | Error::PlaceholderKey | Error::KeyLost { .. } | Error::KeyFile { .. },
        ) => return,
        Err(error) => return report.error("store", &error),
    };
    match store.read_tail(1).await {
        Err(error) => report.error("store", &error),
        Ok(newest) => {
            match newest.messages.first() {
                Some(newest) if newest.ordered_at() > now => report.bad(
                    "clock",
                    format!("the clock says {now}, but the newest message is from later"),
                    "timedatectl set-ntp true",
                ),
                Some(_) => report.good("clock", now.strftime("%Y-%m-%d %H:%M UTC").to_string()),
                None => {}
            }
            match newest.skipped.first() {
                None => report.good("store", "the newest end is sound"),
                Some(first) => report.bad(
                    "store",
                    format!("{} findings; the first: {first}", newest.skipped.len()),
                    "sottovoce verify",
                ),
            }
        }
    }
}

fn mode(file: &Path) -> Option<u32> {
    Some(std::fs::metadata(file).ok()?.permissions().mode() & 0o777)
}
