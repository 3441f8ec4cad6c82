//! `sottovoce team`

pub(crate) mod artifacts;
mod link;
mod members;
mod serve;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sottovoce::Scope;
use sottovoce::config::OpenConversations;
use sottovoce_sync::SyncError;
use sottovoce_team::{TeamError, TeamStatus, Teams};

use crate::cli::whose;
use crate::cmd::share::{conversations, report, stores};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::{self, Cell};
use crate::output::{self, Object, object};
use crate::private_file::{self, PrivateFile};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce team serve                                  a server on this machine, and the link that begins a team
  sottovoce team create LINK Acme --as Anna
  sottovoce team share plans                            the conversation named/plans
  sottovoce team sync                                   publishes it; `up`, `serve`, `wyoming` and `mcp --http` do so by themselves
  sottovoce team invite plans --to link.txt             the link for one new member, to write in plans
  sottovoce team join link.txt --as Ben                 on the member's device
  sottovoce team members
  sottovoce team revoke Ben                             shuts Ben out, and gives what is shared a new key

Everything is sealed on the members' devices. The server sees who is a member, when something was written and how long it is, and \
nothing that was said. What one member forgets is forgotten by all.";

/// Shares named conversations with a team, over a server that cannot read them
///
/// Only named conversations are ever shared, each by the wish of the member that has it. They stay in this store and are read and
/// written there, also without the server.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Serve(serve::Args),
    Create(CreateArgs),
    Share(ShareArgs),
    Unshare(UnshareArgs),
    Invite(members::InviteArgs),
    Join(JoinArgs),
    Sync(SyncArgs),
    /// Shows the teams, what is shared with them, and what was not published yet
    ///
    /// Asks no server: what members have written since the last sync is not known.
    Status,
    Members(members::MembersArgs),
    Grant(members::GrantArgs),
    Revoke(members::RevokeArgs),
    Leave(LeaveArgs),
    Export(ExportArgs),
}

impl Args {
    /// Whether it goes on until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        matches!(&self.verb, Verb::Serve(_) | Verb::Sync(SyncArgs { watch: true, .. }))
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Serve(args) => serve::run(session, args).await,
        Verb::Create(args) => create(session, args).await,
        Verb::Share(args) => share(session, args).await,
        Verb::Unshare(args) => unshare(session, args).await,
        Verb::Invite(args) => members::invite(session, args).await,
        Verb::Join(args) => join(session, args).await,
        Verb::Sync(args) => sync(session, args).await,
        Verb::Status => status(session).await,
        Verb::Members(args) => members::list(session, args).await,
        Verb::Grant(args) => members::grant(session, args).await,
        Verb::Revoke(args) => members::revoke(session, args).await,
        Verb::Leave(args) => leave(session, args).await,
        Verb::Export(args) => export(session, args).await,
    }
}

/// Which team a command is about.
#[derive(Debug, clap::Args)]
struct Which {
    /// The team, if this store is in several
    #[arg(long, value_name = "NAME")]
    team: Option<String>,
}

/// What a member may do with a conversation.
const LEVELS: [&str; 3] = ["read", "write", "manage"];

/// Reads a level or a role by one of its names.
fn spelt<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: [&'static str; 3],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(name.into()))
}

/// The name of a level or a role.
fn name_of(value: Option<impl Serialize>) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or("no access").to_owned()
}

/// The store's teams. Never makes a key: before the first use the store is in none.
fn teams(session: &Session) -> Result<Teams, Failure> {
    Ok(of(&conversations(session, false)?.ok_or(TeamError::NoTeam)?))
}

/// The teams of a store. Makes the key on first use.
fn new_teams(session: &Session) -> Result<Teams, Failure> {
    Ok(of(&conversations(session, true)?.ok_or(TeamError::NoTeam)?))
}

/// The teams with which these conversations are shared.
pub(crate) fn of(conversations: &Arc<OpenConversations>) -> Teams {
    let clock = Arc::clone(conversations.clock());
    Teams::new(stores::stores(Arc::clone(conversations)), clock)
}

/// Begins a team at a server, with the link that `sottovoce team serve` has shown
#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// The link, a file with it, or `-` for standard input
    #[arg(value_name = "FILE|LINK|-")]
    link: String,

    /// The team's name, as members see it
    name: String,

    /// Your name, as the members see it; the user's name on this machine unless given
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
}

async fn create(session: &Session, args: CreateArgs) -> Outcome {
    let link = link::read(&args.link)?;
    let called = args.called.unwrap_or_else(link::user_name);
    new_teams(session)?.create(&link, &args.name, &called).await?;
    session.tell(object!("team": args.name, "address": link.address()), || {
        let there = format!("the team {} is there, and {called} owns it", args.name);
        let next = "`sottovoce team share NAME` shares a conversation; `sottovoce team invite NAME` lets somebody in";
        format!("{}\n{next}", output::one_line(&there))
    })
}

/// Accepts a link: becomes a member of its team, or gets more of its conversations
///
/// Each conversation becomes a named one of this store. One that has the same name already stays as it is: the shared one gets a
/// number.
#[derive(Debug, clap::Args)]
struct JoinArgs {
    /// The link, a file with it, or `-` for standard input
    #[arg(value_name = "FILE|LINK|-")]
    link: String,

    /// Your name, as the members see it; the user's name on this machine unless given
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
}

async fn join(session: &Session, args: JoinArgs) -> Outcome {
    let link = link::read(&args.link)?;
    let called = args.called.unwrap_or_else(link::user_name);
    let joined = new_teams(session)?.join(&link, &called).await?;
    let conversations: Vec<String> = joined.conversations.iter().map(ToString::to_string).collect();
    let row = object!(
        "team": joined.team, "isNew": joined.is_new, "conversations": conversations,
    );
    session.tell(row, || {
        let mut lines = vec![match joined.is_new {
            true => format!("joined the team {} as {called}", joined.team),
            false => format!("the link of the team {} is accepted", joined.team),
        }];
        lines.extend(conversations.iter().map(|conversation| format!("shared: {conversation}")));
        lines.push("`sottovoce team sync` brings what was written".to_owned());
        lines.iter().map(|line| output::one_line(line)).collect::<Vec<_>>().join("\n")
    })
}

/// Shares a named conversation: everything in it, and what is said from now on
///
/// Nobody but you can read it before you invite others. Sends nothing yet.
#[derive(Debug, clap::Args)]
struct ShareArgs {
    /// The conversation, such as plans or named/plans
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Scope,

    #[command(flatten)]
    which: Which,
}

async fn share(session: &Session, args: ShareArgs) -> Outcome {
    teams(session)?.share(args.which.team.as_deref(), &args.conversation).await?;
    output::note(&format!(
        "{} is shared with the next `sottovoce team sync`; `sottovoce team invite` lets others in",
        args.conversation
    ));
    Ok(Exit::Done)
}

/// Ends the sharing of a conversation. What is in it stays in this store
///
/// The other members go on sharing it, unless it ends for all.
#[derive(Debug, clap::Args)]
struct UnshareArgs {
    /// The conversation
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Scope,

    /// For all members: deletes the conversation at the server. What they have read stays with them
    #[arg(long)]
    for_all: bool,
}

async fn unshare(session: &Session, args: UnshareArgs) -> Outcome {
    teams(session)?.unshare(&args.conversation, args.for_all).await?;
    let conversation = &args.conversation;
    output::note(&match args.for_all {
        true => format!("{conversation} is deleted at the server, and stays in this store"),
        false => format!("{conversation} is no longer shared from here, and stays in this store"),
    });
    Ok(Exit::Done)
}

/// The longest time between two syncs, if a server cannot tell of news.
const INTERVAL: Duration = Duration::from_secs(60);

/// Receives what members have written, and publishes what is new here
#[derive(Debug, clap::Args)]
struct SyncArgs {
    /// Goes on until Ctrl-C: at once when a member writes, and soon after something was said here
    #[arg(long)]
    watch: bool,

    /// Reads everything again that the servers have, and publishes what they lack; what is here stays
    #[arg(long, conflicts_with = "watch")]
    from_start: bool,

    /// Also fetches the contents of artifacts, which otherwise come when they are opened
    #[arg(long, conflicts_with = "watch")]
    artifacts: bool,
}

async fn sync(session: &Session, args: SyncArgs) -> Outcome {
    let teams = teams(session)?;
    if args.watch {
        if teams.status().await?.is_empty() {
            return Err(TeamError::NoTeam.into());
        }
        return report::watch(session, Arc::new(teams), INTERVAL).await;
    }
    if args.from_start {
        teams.begin_again().await?;
    }
    let (bar, progress) = report::records_bar();
    let report = report::attended(&bar, teams.sync(progress)).await?;
    let exit = report::show(session, &report)?;
    if args.artifacts {
        let fetched = teams.fetch_artifacts().await?;
        output::note(&format!("fetched {}", output::counted(fetched as u64, "artifact")));
    }
    Ok(exit)
}

fn row(status: &TeamStatus) -> Object {
    let shared = status.conversations.iter().map(|shared| {
        object!(
            "conversation": shared.scope.to_string(), "may": name_of(shared.level),
            "unread": shared.unread, "unpublished": shared.is_unpublished,
            "unfetchedArtifacts": shared.unfetched,
        )
    });
    object!(
        "team": status.name, "address": status.address, "called": status.called,
        "syncedAt": status.synced_at,
        // When the access of this store ends unless it syncs before.
        "expires": status.expires, "conversations": shared.collect::<Vec<_>>(),
        // Conversations that were granted and whose link was not opened here.
        "withoutKey": status.without_key,
    )
}

async fn status(session: &Session) -> Outcome {
    let teams = teams(session)?.status().await?;
    if session.json {
        teams.iter().try_for_each(|team| output::json(&row(team)))?;
        return Ok(Exit::Done);
    }
    if teams.is_empty() {
        output::note("this store is in no team");
    }
    for team in &teams {
        let when = match team.synced_at {
            Some(at) => format!("last synced {}", output::moment(at)),
            None => "never synced".to_owned(),
        };
        let line = format!("{} at {}, as {}: {when}", team.name, team.address, team.called);
        output::line(output::one_line(&line))?;
        let cells = team.conversations.iter().map(|shared| {
            [
                Cell::new(&shared.scope.to_string()).at_most(50),
                Cell::new(&name_of(shared.level)),
                Cell::new(if shared.is_unpublished { "changed" } else { "" }),
                Cell::number(shared.unread),
                Cell::number(shared.unfetched as u64),
            ]
        });
        table::show(
            ["conversation", "you may", "here", "unread", "artifacts there"],
            cells.collect(),
        )?;
        if team.without_key > 0 {
            let granted = output::counted(team.without_key as u64, "conversation");
            output::warning(&format!("{granted} granted without a link: ask for it"));
        }
    }
    Ok(Exit::Done)
}

/// Leaves a team. Its conversations stay in this store, and are shared with nobody any more
#[derive(Debug, clap::Args)]
struct LeaveArgs {
    #[command(flatten)]
    which: Which,

    /// Also if the server does not answer or refuses
    #[arg(long)]
    force: bool,
}

async fn leave(session: &Session, args: LeaveArgs) -> Outcome {
    teams(session)?.leave(args.which.team.as_deref(), args.force).await?;
    output::note("left the team; what was shared stays in this store");
    Ok(Exit::Done)
}

/// Writes everything that you may read at the server to a file, opened, as lines of JSON
///
/// Each line is a record with its conversation, its number, when the server took it and who wrote it. Whoever has the file can read
/// it all. Artifacts are named, not contained. `sottovoce export` writes a conversation as it is in this store.
#[derive(Debug, clap::Args)]
struct ExportArgs {
    /// The new file
    file: PathBuf,

    #[command(flatten)]
    which: Which,
}

async fn export(session: &Session, args: ExportArgs) -> Outcome {
    private_file::check(&args.file, session)?;
    let teams = teams(session)?;
    let new = PrivateFile::begin(&args.file, session)?;
    let bar = output::progress(None, "exporting");
    let mut lines = io::BufWriter::new(&new.file);
    let mut failed = None;
    let mut count = 0;
    let exported = teams.export(args.which.team.as_deref(), |record| {
        let line = serde_json::to_string(&record).map_err(io::Error::from);
        if let Err(error) = line.and_then(|line| writeln!(lines, "{line}")) {
            failed = Some(error);
            return Err(SyncError::State { reason: "the file cannot be written" }.into());
        }
        count += 1;
        bar.set_message(format!("exporting: {}", output::counted(count, "record")));
        Ok(())
    });
    let exported = exported.await;
    let flushed = lines.flush();
    drop(lines);
    bar.finish_and_clear();
    if let Some(error) = failed.or(flushed.err()) {
        return Err(new.unwritable(&error));
    }
    exported.map_err(Failure::from)?;
    new.end()?;
    output::note(&format!("exported {}", output::counted(count, "record")));
    Ok(Exit::Done)
}
