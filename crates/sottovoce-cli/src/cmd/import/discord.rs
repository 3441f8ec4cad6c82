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
  sottovoce import discord ~/bot --skip-expired     only what the bot itself would still use
  sottovoce import discord ~/bot --with-limits      and forget as the bot does
  sottovoce --scope dm/42 tail                      afterwards: one of the conversations

Exit codes:
  0  all is taken                  3  something was refused; the rest is taken
  1  failed; see the message     130  interrupted; the same command goes on from there";

/// Takes over the context folder of the Discord bot
///
/// Each person's messages in a channel become the conversation guild/GUILD/CHANNEL/USER, direct messages dm/USER, and
/// those with a persona a thread of these with the persona's name. The bot uses a conversation for a day after it was
/// last added to, and keeps its newest 15 messages. Here every message is taken and stays, but prompts leave out what the
/// bot would no longer use; --with-limits has each conversation forget as the bot does. The folder stays as it is.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The folder with `guilds` and `dms`, or the one with that one as `context`
    dir: PathBuf,

    /// Only tells what would be taken
    #[arg(long)]
    dry_run: bool,

    /// Leaves out conversations that have expired
    #[arg(long)]
    skip_expired: bool,

    #[command(flatten)]
    limits: Limits,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = DiscordFolder::new(args.dir, session.clock().now().timestamp());
    let Args { dry_run, skip_expired, limits, .. } = args;
    let wishes = Wishes { dry_run, skip_expired, limits };
    conversations::merge_newer(session, wishes, source).await
}
