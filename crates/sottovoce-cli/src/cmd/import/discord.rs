//! `sottovoce import discord`

use std::path::PathBuf;

use sottovoce_import::DiscordFolder;

use super::conversations::{self, Wishes};
use super::limits::Limits;
use crate::exit::Outcome;
use crate::session::Session;

const AFTER_HELP: &str = "\
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
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
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

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = DiscordFolder::new(args.dir, session.clock().now().timestamp());
    let Args { dry_run, skip_expired, limits, .. } = args;
    let wishes = Wishes { dry_run, skip_expired, limits };
    conversations::import_all(session, wishes, source).await
}
