//! `sottovoce conversations`

mod change;

use jiff::Timestamp;
use serde::Serialize;
use sottovoce::context::recall::SearchQuery;
use sottovoce::store::Finding;
use sottovoce::{ConversationStore, Scope, with_causes};

use crate::cmd::memory::scopes;
use crate::cmd::memory::stats::moment;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::table;
use crate::output::table::Cell;
use crate::output::{self, DIM};
use crate::session::{Session, Stores};

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
    Rename(change::Rename),
    /// Adds tags to the conversation
    Tag {
        /// The tags; a tag of several words needs quotes
        #[arg(required = true, value_parser = change::parse_tag)]
        name: Vec<String>,
    },
    /// Removes tags from the conversation
    Untag {
        /// The tags
        #[arg(required = true, value_parser = change::parse_tag)]
        name: Vec<String>,
    },
    /// Shows its title, its tags and its size
    Show,
}

/// A conversation in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    scope: String,
    title: Option<String>,
    tags: Vec<String>,
    messages: u64,
    artifacts: usize,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    /// Findings, such as settings that cannot be read.
    #[serde(skip)]
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Unreadable {
    scope: String,
    error: String,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        None => list(session, &args.query.join(" "), &args.tag).await,
        Some(Action::Rename(rename)) => change::rename(session, rename).await,
        Some(Action::Tag { name }) => change::tag(session, name).await,
        Some(Action::Untag { name }) => change::untag(session, name).await,
        Some(Action::Show) => {
            let config = session.config()?;
            let row = Row::of(&session.stores_or_empty(&config)?, session.scope.clone()).await?;
            row.show(session)?;
            output::skipped(&row.findings);
            Ok(if row.findings.is_empty() { Exit::Done } else { Exit::Problems })
        }
    }
}

async fn list(session: &Session, query: &str, tags: &[String]) -> Outcome {
    let config = session.config()?;
    let all = scopes::all(&config)?;
    if all.is_empty() {
        return Err(Failure::Nothing { folder: config.storage_root()? });
    }
    let words = SearchQuery::of_words(query);
    let stores = session.stores_or_empty(&config)?;
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(Some(all.len() as u64), "looking");
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for scope in all {
        let row = interrupt.or("", Row::of(&stores, scope.clone())).await?;
        bar.inc(1);
        match row {
            Ok(row) if row.is_meant(&words, tags) => rows.push(row),
            Ok(_) => {}
            Err(Failure::Library(error)) => unreadable.push((scope, with_causes(&error))),
            Err(failure) => return Err(failure),
        }
    }
    bar.finish_and_clear();
    rows.sort_by(|a, b| (b.updated_at, &a.scope).cmp(&(a.updated_at, &b.scope)));
    if rows.is_empty() && unreadable.is_empty() && !session.json {
        output::note("no conversation has these words and tags");
    }
    match session.json {
        true => rows.iter().try_for_each(output::json)?,
        false if rows.is_empty() => {}
        false => table::show(
            ["scope", "title", "messages", "updated", "tags"],
            rows.iter().map(Row::cells).collect(),
        )?,
    }
    for (scope, error) in &unreadable {
        if session.json {
            output::json(&Unreadable { scope: scope.to_string(), error: error.clone() })?;
        } else {
            output::warning(&format!("{scope}: {error}"));
        }
    }
    let mut is_sound = unreadable.is_empty();
    for row in &rows {
        for finding in &row.findings {
            is_sound = false;
            output::warning(&format!("{}: {finding}", row.scope));
        }
    }
    Ok(if is_sound { Exit::Done } else { Exit::Problems })
}

impl Row {
    async fn of(stores: &Stores<'_>, scope: Scope) -> Result<Self, Failure> {
        let store = stores.open(scope.clone()).await?;
        let (profile, stats) = (store.profile().await?, store.stats().await?);
        let findings = store.read_tail(0).await?.skipped;
        Ok(Self {
            scope: scope.to_string(),
            title: profile.title.clone(),
            tags: profile.tags.iter().cloned().collect(),
            messages: stats.message_count,
            artifacts: stats.artifacts,
            created_at: profile.created_at.or(stats.first),
            updated_at: stats.last,
            findings,
        })
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
        let day = self.updated_at.map(|at| at.strftime("%Y-%m-%d").to_string());
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
            return output::json(self);
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
