//! `sottovoce import`

mod conversations;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use sottovoce::import::{
    Backup, ConversationReport, ImportReport, ImportedMessages, OpenStore, PassedOver, Refusal,
};
use sottovoce::{EncryptionKey, Error, Scope};
use sottovoce_import::{ChatExport, DiscordFolder, ElaraFolder, JsonLines, MimirFolder, Reader};
#[cfg(feature = "sqlite")]
use sottovoce_import::{ChorusDatabase, LlmGeneratorDatabase};

use conversations::{
    Limits, Total, Wishes, add, check, finish, import_all, tell_conversation, verb,
};

use crate::cmd::recall::understand_import;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::attended;
use crate::output::{self, BOLD, WARN, object};
use crate::secret::Sources;
use crate::session::Session;

/// What is kept of an import that was interrupted.
const IMPORTED: &str = "what was imported is kept; repeat the command to continue";
/// The most refused files that people are shown; `--json` lists them all.
const LISTED: usize = 20;

#[cfg(feature = "sqlite")]
const CHORUS: &str = "\
Examples:
  sottovoce import chorus ~/.chorus-agents --dry-run    what is in it?
  sottovoce import chorus backup/chorus.db              a database by itself, without saved sessions
  sottovoce --scope named/mira tail                     afterwards: one of the conversations";
#[cfg(feature = "sqlite")]
const LLM_GENERATOR: &str = "\
Examples:
  sottovoce import mcp-llm-generator ~/generator --dry-run        what is in it?
  sottovoce import mcp-llm-generator backup/context-memory.db     a database by itself
  sottovoce --scope named/context-mep92q9v-mkorf9 tail            afterwards: one of the contexts";
const MIMIR: &str = "\
Examples:
  sottovoce import mimir ~/project --dry-run       what is in ~/project/.mimir/context?
  sottovoce import mimir ~/project
  sottovoce --scope named/conv-abc123 tail         afterwards: one of the conversations";
const OPENAI: &str = "\
Examples:
  sottovoce import openai ~/Downloads/chatgpt.zip --dry-run  what is in the export?
  sottovoce import openai ~/Downloads/chatgpt                all of it, unpacked
  sottovoce import openai training.jsonl       chat completions: named/training and so on";
const CLAUDE: &str = "\
Examples:
  sottovoce import claude ~/Downloads/data.zip --dry-run     what is in the export?
  sottovoce import claude ~/Downloads/conversations.json";

const EXAMPLES: &str = "\
Examples:
  sottovoce import backup backup.sottovoce           what `export` wrote
  sottovoce import openai ~/Downloads/chatgpt.zip    what ChatGPT exported
  sottovoce import jsonl chat.jsonl --dry-run        what would come in?
  sottovoce import jsonl --help                      more about one of them";

/// Imports conversations from other programs
///
/// Opens the other program's files read-only. A message that was imported before, or was forgotten since, is not
/// imported again, so an import can be interrupted and repeated. Each message keeps its time and is sorted by it, but
/// never before a message that precedes it in the other program.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    system: System,
}

#[derive(Subcommand)]
enum System {
    Backup(BackupArgs),
    /// Imports the database of chorus
    ///
    /// Each agent's messages become the conversation named/AGENT, with its threads. Saved sessions become snapshots,
    /// documents become artifacts, and the system prompt becomes the persona, which does not expire. Messages that were
    /// cleared in chorus stay out of prompts. The database is read from a private copy in memory.
    ///
    /// PATH: the folder with `db/chorus.db` and `agents`, or the database itself.
    #[cfg(feature = "sqlite")]
    #[command(after_help = CHORUS)]
    Chorus(Source),
    /// Imports Claude's data export
    ///
    /// Each conversation becomes named/ID, with its title. If a question was edited or an answer written anew, the branch
    /// of the last message is imported. Other branches, thoughts, the use of tools, attachments and files are counted as
    /// passed over.
    ///
    /// PATH: the export's zip, its folder or its `conversations.json`.
    #[command(after_help = CLAUDE)]
    Claude(Source),
    Discord(DiscordArgs),
    Elara(ElaraArgs),
    Jsonl(JsonlArgs),
    /// Imports the database of mcp-llm-generator
    ///
    /// Each context becomes the conversation named/ID, with its name, its persona, and its messages in the order of their
    /// rows. Presets become presets here, unless one of the same id was made or changed here. A number outside the limits
    /// here is replaced by the nearest one within them, and kept as metadata. Expiry starts anew with the last interaction.
    /// The database is read from a private copy in memory.
    ///
    /// PATH: the database, `context-memory.db` or `data/contexts.db`, or the folder that holds it.
    #[cfg(feature = "sqlite")]
    #[command(after_help = LLM_GENERATOR)]
    McpLlmGenerator(Source),
    /// Imports the conversations that Mimir keeps in a project
    ///
    /// Each conversation becomes named/ID. Its messages keep the order of Mimir's lines, their times, tool calls and notes.
    /// Title, tags, notes and costs become settings, unless the conversation has its own already. Artifacts keep Mimir's id
    /// as `mimirId`, so that references in messages still work. Saved states become snapshots.
    ///
    /// PATH: the project's folder, or its `.mimir/context`.
    #[command(after_help = MIMIR)]
    Mimir(Source),
    /// Imports ChatGPT's data export, or files of OpenAI chat completions
    ///
    /// Each conversation of an export becomes named/ID, with its title. If an answer was regenerated or a question
    /// edited, the branch that ChatGPT shows is imported, or the newest where the export does not say which. Other
    /// branches, hidden messages and parts that are not text are counted as passed over; speech comes as its transcript.
    ///
    /// A file with {"messages":[…]}, or with one such object per line, becomes named/FILE, and further objects
    /// named/FILE-2 and so on. These messages have no times: the first gets the time of the file's last change, and each
    /// further one a millisecond more. Repeating the import after the file was touched does not import it twice.
    ///
    /// Files are read into memory as plain text, up to 1 GiB each, or all of a zip.
    ///
    /// PATH: the export's zip, its folder or its `conversations.json`, or a file of chat completions.
    #[command(after_help = OPENAI)]
    Openai(Source),
}

/// A source whose conversations are imported as they are.
#[derive(clap::Args)]
struct Source {
    /// The folder or file; see above
    path: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let wishes = |dry_run| Wishes { dry_run, skip_expired: false, limits: Limits::default() };
    match args.system {
        System::Backup(args) => add_backup(session, args).await,
        #[cfg(feature = "sqlite")]
        System::Chorus(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), ChorusDatabase::new(path)).await
        }
        System::Claude(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), ChatExport::claude(path)).await
        }
        System::Discord(args) => import_discord(session, args).await,
        System::Elara(args) => import_elara(session, args).await,
        System::Jsonl(args) => import_jsonl(session, args).await,
        #[cfg(feature = "sqlite")]
        System::McpLlmGenerator(Source { path, dry_run }) => {
            let now = session.clock().now().timestamp();
            import_all(session, wishes(dry_run), LlmGeneratorDatabase::new(path, now)).await
        }
        System::Mimir(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), MimirFolder::new(path)).await
        }
        System::Openai(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), ChatExport::openai(path)).await
        }
    }
}

/// Imports messages into the configured store, and shows the result.
async fn keep(session: &Session, imported: ImportedMessages, dry_run: bool) -> Outcome {
    let system = imported.system;
    if dry_run {
        let store = session.store_or_empty().await?;
        let report = imported.preview(&store).await?;
        return tell(session, system, &report, dry_run);
    }
    let store = session.store_or_make().await?;
    let work = async |bar: &_| imported.import_into(&store, output::moving(bar)).await;
    let report = attended("keeping", 0, IMPORTED, work).await??;
    let exit = tell(session, system, &report, dry_run)?;
    understand_import(Arc::new(store)).await;
    Ok(exit)
}

fn tell(session: &Session, system: &'static str, report: &ImportReport, dry_run: bool) -> Outcome {
    let refused = &report.refused;
    if session.json {
        list_json(refused)?;
        output::json(&object!(
            "system": system, "dryRun": dry_run, "taken": report.taken,
            "alreadyThere": report.already_there, "forgotten": report.forgotten,
            "refused": refused.len(), "passedOver": report.passed_over.total(),
            "passedOverKinds": report.passed_over, "forms": report.forms,
        ))?;
    } else {
        list(refused)?;
        output::line(in_words(report, dry_run))?;
    }
    Ok(Exit::of(refused.is_empty()))
}

/// Shows people the first refused files.
fn list(refused: &[Refusal]) -> std::io::Result<()> {
    for refusal in refused.iter().take(LISTED) {
        output::line(format!("{WARN}refused{WARN:#}  {refusal}"))?;
    }
    match refused.len().saturating_sub(LISTED) {
        0 => Ok(()),
        more => {
            output::line(format!("{WARN}refused{WARN:#}  and {more} more; --json lists them all"))
        }
    }
}

/// The kinds of entries that were passed over, and their numbers.
fn passed_over(others: &PassedOver) -> String {
    let kinds: Vec<_> = others.kinds().map(|(kind, number)| format!("{kind} ({number})")).collect();
    match kinds.is_empty() {
        true => String::new(),
        false => format!("; passed over: {}", kinds.join(", ")),
    }
}

/// Shows programs all refused files.
fn list_json(refused: &[Refusal]) -> std::io::Result<()> {
    refused.iter().try_for_each(|Refusal { file, reason, .. }| {
        output::json(&object!("refused": file, "reason": reason.code(), "why": reason.to_string()))
    })
}

fn in_words(report: &ImportReport, dry_run: bool) -> String {
    let messages = output::messages(report.taken);
    let mut words = format!("{BOLD}{} {messages}{BOLD:#}", verb(dry_run));
    add(
        &mut words,
        &[
            (report.already_there, "already there"),
            (report.forgotten, "forgotten here"),
            (report.refused.len(), "refused"),
        ],
    );
    words.push_str(&passed_over(&report.passed_over));
    let forms: Vec<_> =
        report.forms.iter().map(|(form, number)| format!("{number} {form}")).collect();
    if !forms.is_empty() {
        words.push_str(&format!("; forms: {}", forms.join(", ")));
    }
    words
}

const BACKUP_HELP: &str = "\
To import a file that was sealed under another key than this store's, give that key as below: the 64 digits of its key
file, its secret string or its passphrase. For a new machine, `sottovoce restore` takes the key over.

Examples:
  sottovoce import backup ~/backup.sottovoce
  sottovoce import backup ~/old.sottovoce --ask-key      sealed under the key of a store that is gone";

/// Imports what `sottovoce export` wrote: JSON, or a sealed backup
///
/// Each conversation goes into the scope that it came from. An empty conversation becomes exactly the exported one,
/// with its message numbers, settings, artifacts, snapshots and limits. Into any other, messages are merged: none is
/// stored twice, no message that was forgotten here comes back, and those that were forgotten in the exported store are
/// forgotten here too. Nothing else is deleted. Messages that exist only here are never hidden or cleared, limits stay,
/// and no persona moves to another conversation. The result lists what was left out.
#[derive(clap::Args)]
#[command(after_help = BACKUP_HELP)]
pub(crate) struct BackupArgs {
    /// The file
    file: PathBuf,

    #[command(flatten)]
    keys: Sources,

    #[command(flatten)]
    limits: Limits,
}

async fn add_backup(session: &Session, args: BackupArgs) -> Outcome {
    check(session)?;
    let Some(others) = args.keys.read()? else { return Ok(Exit::Interrupted) };
    if args.limits.are_wanted && !args.limits.confirm_those_of("the backup")? {
        return Ok(Exit::Interrupted);
    }
    let mut backup = Backup::new(args.file).with_limits(args.limits.are_wanted);
    for text in others {
        for key in readings(&text)? {
            backup = backup.key(key);
        }
    }
    for old in retired_keys(&session.config()?.key_file()?) {
        backup = backup.key(old);
    }
    import_backup(session, backup).await
}

/// The keys beside the key file that changes of keys have left there for older backups.
fn retired_keys(key_file: &Path) -> Vec<EncryptionKey> {
    let (Some(folder), Some(name)) = (key_file.parent(), key_file.file_name()) else {
        return Vec::new();
    };
    let begin = format!("{}.", name.to_string_lossy());
    let is_retired = |name: &str| name.starts_with(&begin) && name.ends_with(".old");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let retired = files.filter(|file| file.file_name().to_str().is_some_and(is_retired));
    retired.filter_map(|file| EncryptionKey::read_file(&file.path()).ok().flatten()).collect()
}

/// Imports a backup with the keys that were given for it and those of the store.
pub(crate) async fn import_backup(session: &Session, mut backup: Backup) -> Outcome {
    if session.known_keys()?.is_none() {
        // A key that is made for a backup that does not open would only be in the way of the right one.
        backup.check()?;
    }
    let config = Arc::new(session.config()?.clone());
    let keys = session.stores_or_make()?.keys();
    backup = keys.iter().cloned().fold(backup, Backup::key);
    let clock = session.clock();
    let open: OpenStore = Box::new(move |scope: Scope| {
        let (config, keys, clock) = (Arc::clone(&config), keys.clone(), Arc::clone(&clock));
        Box::pin(async move { config.open_store_with(keys, scope, clock).await })
    });
    let work = async |bar: &_| backup.import(open, output::moving(bar), |_| {}).await;
    let reports = attended("restoring", 0, IMPORTED, work).await??;
    tell_backup(session, reports)
}

/// The keys that a text may mean: a key file's digits, a passphrase, a secret string.
fn readings(text: &str) -> Result<Vec<EncryptionKey>, Failure> {
    if let Some(key) = EncryptionKey::from_hex(text) {
        return Ok(vec![key]);
    }
    let keys = [EncryptionKey::from_passphrase(text.to_owned()), EncryptionKey::from_secret(text)];
    let keys: Result<Vec<_>, Error> = keys.into_iter().collect();
    Ok(keys?)
}

fn tell_backup(session: &Session, reports: Vec<ConversationReport>) -> Outcome {
    let mut total = Total::of("sottovoce");
    let mut refused = Vec::new();
    for report in reports {
        total.add(&report);
        tell_conversation(session, &report, false)?;
        refused.extend(report.messages.refused);
    }
    finish(session, total, &refused)
}

const DISCORD_HELP: &str = "\
Examples:
  sottovoce import discord ~/bot --dry-run          what is in ~/bot/context?
  sottovoce import discord ~/bot --skip-expired     only what the bot would still use
  sottovoce import discord ~/bot --with-limits      with the limits of the bot
  sottovoce --scope dm/42 tail                      afterwards: one of the conversations";

/// Imports the context folder of the Discord bot
///
/// Each user's messages in a channel become the conversation guild/GUILD/CHANNEL/USER, direct messages become dm/USER,
/// and messages with a persona a thread with its name. The bot uses a conversation for a day after its last message,
/// and keeps its newest 15 messages. Here all messages are kept, but prompts leave out what the bot would no longer
/// use. With --with-limits, each conversation gets the bot's limits.
#[derive(clap::Args)]
#[command(after_help = DISCORD_HELP)]
pub(crate) struct DiscordArgs {
    /// The folder with `guilds` and `dms`, or a folder with that one as `context`
    dir: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,

    /// Skips conversations that have expired
    #[arg(long)]
    skip_expired: bool,

    #[command(flatten)]
    limits: Limits,
}

async fn import_discord(session: &Session, args: DiscordArgs) -> Outcome {
    let source = DiscordFolder::new(args.dir, session.clock().now().timestamp());
    let DiscordArgs { dry_run, skip_expired, limits, .. } = args;
    let wishes = Wishes { dry_run, skip_expired, limits };
    import_all(session, wishes, source).await
}

const ELARA_HELP: &str = "\
Examples:
  sottovoce import elara --dry-run                 what is in Elara's usual folder?
  sottovoce import elara ~/old --ask-key           types the keys, unseen
  ELARA_KEY=… sottovoce import elara --key-env ELARA_KEY";

/// Imports a folder of Elara, the voice assistant in C#
///
/// Reads every format that its versions wrote. One folder may hold plain files and files under several keys. Most
/// folders are plain, because Elara's key is empty by default. A file under another key and a damaged file look the
/// same: both are refused as "wrong key or damaged", and another run with the right key imports them. The folder is
/// not changed: plain text in it stays until you delete it.
#[derive(clap::Args)]
#[command(after_help = ELARA_HELP)]
pub(crate) struct ElaraArgs {
    /// The folder [default: Elara's own]
    dir: Option<PathBuf>,

    #[command(flatten)]
    keys: Sources,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

async fn import_elara(session: &Session, args: ElaraArgs) -> Outcome {
    let path = args.dir.map_or_else(usual, Ok)?;
    let Some(keys) = args.keys.read()? else { return Ok(Exit::Interrupted) };
    let folder = keys.iter().fold(ElaraFolder::new(path), |folder, key| folder.key(key));
    keep(session, read(folder).await?, args.dry_run).await
}

/// Reads a source with a progress bar.
async fn read<R: Reader>(source: R) -> Result<R::Output, Failure> {
    let work = async |bar: &_| source.read(output::moving(bar)).await;
    Ok(attended("reading", 0, "nothing was imported yet", work).await??)
}

fn usual() -> Result<PathBuf, Failure> {
    let path = ElaraFolder::usual_path().ok_or_else(|| {
        Failure::input("there is no home folder to look for Elara's in", "name the folder")
    })?;
    output::note(&format!("reading Elara's usual folder {}", path.display()));
    Ok(path)
}

const JSONL_HELP: &str = "\
Fields of a line:
  role        user, assistant, system or tool, in any letter case; also human, ai, bot, model
  content     the words
  the time    as timestampUtc, timestamp, created_at, createdAt, time or date: like 2025-08-24T18:36:25+02:00, or \
the seconds or milliseconds since 1970 as a number
  id          what the source calls the message; kept as messageId
  metadata    texts by name; values of other kinds are kept as their JSON
  toolCalls, toolCallId, threadId, offsetMinutes    as `tail --json` prints them

Examples:
  sottovoce --scope named/kitchen import jsonl chat.jsonl --dry-run
  sottovoce --scope named/kitchen import jsonl chat.jsonl     again when it has grown: imports what is new
  sottovoce --json tail -n 100000 | sottovoce --config other.json import jsonl -";

/// Imports messages as JSON lines, one object each, from any program
///
/// The messages go into the conversation of --scope, and those without a threadId into the thread of --thread. They are
/// sorted by time, and within one moment by line. A line without a time is refused, unless --at-now is given. A
/// repeated import recognizes a message by its line without the metadata; without a time, by the file's name too. Each
/// of several equal lines without an id is a message. Other fields are ignored.
#[derive(clap::Args)]
#[command(after_help = JSONL_HELP)]
pub(crate) struct JsonlArgs {
    /// The file, or `-` for standard input
    file: PathBuf,

    /// Accepts lines without a time, with the current time in their order; repeating the import does not store them
    /// twice
    #[arg(long)]
    at_now: bool,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

async fn import_jsonl(session: &Session, args: JsonlArgs) -> Outcome {
    let (mut lines, total) = if args.file.as_os_str() == "-" {
        if std::io::stdin().is_terminal() {
            output::note("reading JSON lines; end with Ctrl-D");
        }
        (JsonLines::from_reader(std::io::stdin()), None)
    } else {
        (JsonLines::new(args.file), Some(0))
    };
    lines = lines.in_thread(session.thread.clone());
    if args.at_now {
        lines = lines.said_at(session.clock().now().timestamp());
    }
    // Standard input cannot be left while it is read, so a signal ends the process.
    let work = async |bar: &_| {
        let progress = output::moving(bar);
        let shown = move |done| {
            if total.is_some() {
                progress(done)
            }
        };
        lines.read(shown).await
    };
    let imported = output::with_bar(total, "reading", work).await?;
    keep(session, imported, args.dry_run).await
}
