//! `sottovoce conversations` and `sottovoce scopes`

use std::sync::Arc;

use indicatif::ProgressBar;
use jiff::Timestamp;
use sottovoce::admin::Stats;
use sottovoce::context::recall::SearchQuery;
use sottovoce::store::{Finding, ProfileChange};
use sottovoce::{ConversationStore, FileConversationStore, Scope, with_causes};

use crate::cmd::stats;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::{attended, awaited};
use crate::output::table::{self, Cell};
use crate::output::{self, DIM, Object, byte_size, day, minute, moment, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce conversations                          all of them, the latest first
  sottovoce conversations kitchen --tag recipes    those that have both
  sottovoce --scope dm/42 conversations rename Holidays in Norway
  sottovoce --scope dm/42 conversations rename --propose     the model finds one
  sottovoce --scope dm/42 conversations tag travel family";

/// Lists conversations by title and tags, or changes the title and tags of one
///
/// Without an action, lists the conversations whose title, tags or scope contain all words of QUERY, with or without
/// accents, in any letter case. It does not look into what was said: `sottovoce search WORDS --all` does. An action
/// applies to the conversation of --scope. Title and tags are sealed as messages are.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// Words in titles, tags and scopes; several need no quotes
    query: Vec<String>,

    /// Only those with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,

    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    Rename(Rename),
    /// Adds tags to the conversation
    Tag {
        /// The tags; a tag of several words needs quotes
        #[arg(required = true, value_parser = parse_tag)]
        name: Vec<String>,
    },
    /// Removes tags from the conversation
    Untag {
        /// The tags
        #[arg(required = true, value_parser = parse_tag)]
        name: Vec<String>,
    },
    /// Shows its title, its tags and its size
    Show,
}

/// A conversation in the list.
struct Row {
    scope: String,
    title: Option<String>,
    tags: Vec<String>,
    messages: u64,
    artifacts: usize,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    /// Findings, such as settings that cannot be read.
    findings: Vec<Finding>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        None => list(session, &args.query.join(" "), &args.tag).await,
        Some(Action::Rename(args)) => rename(session, args).await,
        Some(Action::Tag { name }) => tag(session, name).await,
        Some(Action::Untag { name }) => untag(session, name).await,
        Some(Action::Show) => {
            let row = Row::of(&*session.store_or_empty().await?).await?;
            row.show(session)?;
            output::skipped(&row.findings);
            Ok(Exit::of(row.findings.is_empty()))
        }
    }
}

/// What was found in each conversation, and which cannot be read, with the errors.
type Looked<T> = (Vec<(Scope, T)>, Vec<(Scope, String)>);

/// Looks at every conversation of the store, with a progress bar.
async fn each<T>(
    session: &Session,
    look: impl AsyncFn(&FileConversationStore) -> Result<T, Failure>,
) -> Result<Looked<T>, Failure> {
    let all = session.scopes(true)?;
    if all.is_empty() {
        return Err(session.nothing());
    }
    let (stores, total) = (session.stores_or_empty()?, all.len() as u64);
    let work = async |bar: &ProgressBar| {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        for scope in all {
            let looked = async { look(&stores.open(scope.clone()).await?).await };
            match looked.await {
                Ok(one) => found.push((scope, one)),
                Err(Failure::Library(error)) => unreadable.push((scope, with_causes(&error))),
                Err(failure) => return Err(failure),
            }
            bar.inc(1);
        }
        Ok((found, unreadable))
    };
    attended("looking", total, "", work).await?
}

/// Reports the conversations that cannot be read. Whether there are none.
fn tell_unreadable(session: &Session, unreadable: &[(Scope, String)]) -> std::io::Result<bool> {
    for (scope, error) in unreadable {
        match session.json {
            true => output::json(&object!("scope": scope.to_string(), "error": error))?,
            false => output::warning(&format!("{scope}: {error}")),
        }
    }
    Ok(unreadable.is_empty())
}

async fn list(session: &Session, query: &str, tags: &[String]) -> Outcome {
    let words = SearchQuery::of_words(query);
    let (rows, unreadable) = each(session, async |store: &_| Row::of(store).await).await?;
    let rows = rows.into_iter().map(|(_, row)| row);
    let mut rows: Vec<Row> = rows.filter(|row| row.is_meant(&words, tags)).collect();
    rows.sort_by(|a, b| (b.updated_at, &a.scope).cmp(&(a.updated_at, &b.scope)));
    if rows.is_empty() && unreadable.is_empty() && !session.json {
        output::note("no conversation has these words and tags");
    }
    let _pager = session.pager()?;
    let names = ["scope", "title", "messages", "updated", "tags"];
    session.list(&rows, Row::json, names, Row::cells)?;
    let mut is_sound = tell_unreadable(session, &unreadable)?;
    for row in &rows {
        for finding in &row.findings {
            is_sound = false;
            output::warning(&format!("{}: {finding}", row.scope));
        }
    }
    Ok(Exit::of(is_sound))
}

impl Row {
    async fn of(store: &FileConversationStore) -> Result<Self, Failure> {
        let (profile, stats) = (store.profile().await?, store.stats().await?);
        let findings = store.read_tail(0).await?.skipped;
        Ok(Self {
            scope: store.scope().to_string(),
            title: profile.title.clone(),
            tags: profile.tags.iter().cloned().collect(),
            messages: stats.message_count,
            artifacts: stats.artifacts,
            created_at: profile.created_at.or(stats.first),
            updated_at: stats.last,
            findings,
        })
    }

    fn json(&self) -> Object {
        object!(
            "scope": self.scope, "title": self.title, "tags": self.tags,
            "messages": self.messages, "artifacts": self.artifacts,
            "createdAt": self.created_at, "updatedAt": self.updated_at,
        )
    }

    fn is_meant(&self, words: &SearchQuery, tags: &[String]) -> bool {
        let text = || format!("{}\n{}\n{}", self.scope, self.title(), self.tags.join("\n"));
        let has = |wanted: &String| {
            self.tags.iter().any(|tag| tag.to_lowercase() == wanted.trim().to_lowercase())
        };
        tags.iter().all(has) && words.matches(&text())
    }

    fn title(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }

    fn tags(&self) -> String {
        output::one_line(&self.tags.join(", "))
    }

    /// One row of the table. The scope is never cut, because other commands take it.
    fn cells(&self) -> [Cell; 5] {
        let day = self.updated_at.map(day);
        [
            Cell::new(&self.scope),
            Cell::new(self.title()).at_most(14),
            Cell::number(self.messages),
            Cell::new(&day.unwrap_or_default()),
            Cell::new(&self.tags()).at_most(11).style(DIM),
        ]
    }

    /// Shows all fields.
    fn show(&self, session: &Session) -> std::io::Result<()> {
        if session.json {
            return output::json(&self.json());
        }
        let row = |name: &str, value: String| output::line(format!("{name:<10} {value}"));
        let time = |at: Option<Timestamp>| at.map_or_else(|| "never".to_owned(), moment);
        row("scope", self.scope.clone())?;
        row("title", self.title.as_deref().map_or_else(|| "none".to_owned(), output::one_line))?;
        row("tags", if self.tags.is_empty() { "none".to_owned() } else { self.tags() })?;
        row("messages", self.messages.to_string())?;
        row("artifacts", self.artifacts.to_string())?;
        row("created", time(self.created_at))?;
        row("updated", time(self.updated_at))
    }
}

/// The longest title and tag in characters.
const LONGEST_TITLE: usize = 200;
const LONGEST_TAG: usize = 64;

/// Sets the title of the conversation
#[derive(clap::Args)]
struct Rename {
    /// The title; several words need no quotes
    #[arg(required_unless_present_any = ["clear", "propose"])]
    title: Vec<String>,

    /// Asks the model for a title from the newest messages; forgetting a message removes it
    #[arg(long, conflicts_with_all = ["title", "clear"])]
    propose: bool,

    /// Removes the title
    #[arg(long, conflicts_with = "title")]
    clear: bool,
}

fn parse_tag(text: &str) -> Result<String, String> {
    let tag = text.trim();
    let is_fit = !tag.is_empty() && tag.chars().count() <= LONGEST_TAG;
    if !is_fit || tag.contains(|c: char| c.is_control() || c == ',') {
        return Err(format!("at most {LONGEST_TAG} characters, without commas or line breaks"));
    }
    Ok(tag.to_owned())
}

async fn rename(session: &Session, args: Rename) -> Outcome {
    if args.propose {
        return propose(session).await;
    }
    let title = output::one_line(args.title.join(" ").trim());
    if !args.clear && title.is_empty() {
        return Err(Failure::input("the title is empty", "say --clear to take the title away"));
    }
    if title.chars().count() > LONGEST_TITLE {
        return Err(Failure::input(
            format!("the title is longer than {LONGEST_TITLE} characters"),
            "give a shorter one",
        ));
    }
    let title = Some(title).filter(|_| !args.clear);
    change(session, Box::new(move |profile| profile.rename(title.clone()))).await
}

async fn propose(session: &Session) -> Outcome {
    let store = Arc::new(session.store().await?);
    let conversation = session.conversation(Arc::clone(&store))?;
    awaited("the model looks for a title", "", conversation.propose_title()).await??;
    drop((conversation, store));
    let row = Row::of(&*session.store_or_empty().await?).await?;
    row.show(session)?;
    Ok(Exit::Done)
}

async fn tag(session: &Session, names: Vec<String>) -> Outcome {
    change(session, Box::new(move |profile| profile.tags.extend(names.iter().cloned()))).await
}

async fn untag(session: &Session, names: Vec<String>) -> Outcome {
    let there = session.store_or_empty().await?.profile().await?;
    let absent: Vec<&str> =
        names.iter().filter(|name| !there.tags.contains(*name)).map(String::as_str).collect();
    if !absent.is_empty() {
        let tags: Vec<&str> = there.tags.iter().map(String::as_str).collect();
        let has = if tags.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", tags.join(", "))
        };
        return Err(Failure::input(
            format!("it has no tag {}", absent.join(", ")),
            output::one_line(&has),
        ));
    }
    change(session, Box::new(move |profile| profile.tags.retain(|tag| !names.contains(tag)))).await
}

/// Changes the conversation's settings, and shows the result.
async fn change(session: &Session, change: ProfileChange) -> Outcome {
    let store = session.store_or_make().await?;
    store.change_profile(change).await?;
    let row = Row::of(&store).await?;
    if row.messages == 0 && !session.json {
        output::note(&format!("nothing has been said in {} yet", row.scope));
    }
    row.show(session)?;
    Ok(Exit::Done)
}

pub(crate) async fn run_scopes(session: &Session) -> Outcome {
    let (mut found, unreadable) = each(session, async |store: &_| look(store).await).await?;
    // It holds the presets, even if it has no messages.
    found.retain(|(scope, (stats, _))| *scope != Scope::Default || !is_empty(stats));
    if found.is_empty() && unreadable.is_empty() {
        return Err(session.nothing());
    }
    let _pager = session.pager()?;
    if session.json {
        for (scope, (stats, _)) in &found {
            output::json(&stats::row(scope, stats))?;
        }
    } else {
        let cells = found.iter().map(|(scope, (stats, _))| row(scope, stats)).collect();
        let last = output::head("last said", session.clock().now().timestamp());
        let lines = table::lines(["scope", "messages", "size", &last, "expires"], cells);
        let names = found.into_iter().map(|(_, (_, name))| name);
        for (line, name) in lines.iter().zip(std::iter::once(None).chain(names)) {
            output::line(line)?;
            if let Some(name) = name {
                output::line(format!("  {DIM}{}{DIM:#}", output::one_line(&name)))?;
            }
        }
    }
    let is_sound = tell_unreadable(session, &unreadable)?;
    Ok(Exit::of(is_sound))
}

fn is_empty(stats: &Stats) -> bool {
    stats.message_count + stats.hidden == 0 && stats.snapshots + stats.artifacts == 0
}

/// A conversation's statistics, and its name if it is a context.
async fn look(store: &FileConversationStore) -> Result<(Stats, Option<String>), Failure> {
    let profile = store.profile().await?;
    let name = profile.assigned_persona.as_ref().and_then(|_| profile.title.clone());
    Ok((store.stats().await?, name))
}

/// One row of the table. The scope is never cut, because other commands take it.
fn row(scope: &Scope, stats: &Stats) -> [Cell; 5] {
    let expires = match (stats.expires_at, stats.expires_in) {
        (Some(_), Some(0)) => "expired".to_owned(),
        (Some(at), _) => day(at),
        (None, _) => "never".to_owned(),
    };
    [
        Cell::new(&scope.to_string()),
        Cell::number(stats.message_count),
        Cell::new(&byte_size(stats.bytes)),
        Cell::new(&stats.last.map_or_else(String::new, minute)),
        Cell::new(&expires).style(DIM),
    ]
}
