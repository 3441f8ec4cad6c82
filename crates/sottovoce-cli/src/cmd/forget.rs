//! `sottovoce forget`

pub(crate) mod announce;
mod elsewhere;
mod everything;
mod everywhere;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use sottovoce::context::recall::{Recall, Selection};
use sottovoce::store::{ForgetReport, merged_ranges};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope};

use crate::cmd::search;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce forget 7                          message 7 and the answer to it
  sottovoce forget 7 --only                   message 7 alone
  sottovoce forget --on 2026-11-20            what was said on that day
  sottovoce forget --matching \"oat milk\"     what `sottovoce search` finds
  sottovoce forget --speaker Anna --everywhere
  sottovoce --user anna forget --everywhere   what Anna said, in every conversation
  sottovoce --user anna forget --all          the conversation dm/anna
  sottovoce forget --everything               the whole store";

/// Deletes messages permanently
///
/// Shows everything that will be deleted, and asks first. The answers to a message go with it, unless --only is given,
/// because they often repeat it. A range means the messages in it at that time. The deletion is recorded, so that `verify` reports no gap, and restoring a backup does not bring the messages back. Copies made
/// elsewhere stay. Within the conversation, restored copies are deleted with their originals and the other way round.
/// Both are removed from snapshots, and summaries made from them are deleted. A number that `verify` reports as
/// missing can be recorded as deleted by naming it alone.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Numbers as `tail` shows them: 7, or 3-9
    #[arg(value_name = "NUMBER|RANGE", value_parser = parse_range, required_unless_present_any = ["last", "all", "everything", "speaker", "on", "matching", "everywhere"])]
    numbers: Vec<RangeInclusive<u64>>,

    /// The newest exchange; with --only, the newest message
    #[arg(long, conflicts_with = "numbers")]
    last: bool,

    /// What this person said: messages with this speaker, and the person's own conversations
    #[arg(long, value_name = "NAME", conflicts_with_all = ["numbers", "last"])]
    speaker: Option<String>,

    /// What was said on this day, such as 2026-11-20
    #[arg(long, value_name = "DAY", value_parser = day, conflicts_with_all = ["numbers", "last", "speaker"])]
    on: Option<jiff::civil::Date>,

    /// What `sottovoce search` finds with these words and filters
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["numbers", "last", "speaker", "on"])]
    matching: Option<String>,

    /// That in every conversation; with --user alone, what that person said
    #[arg(long, conflicts_with_all = ["numbers", "last"])]
    everywhere: bool,

    /// Exactly what was named, without the answers to it
    #[arg(long, conflicts_with = "all")]
    only: bool,

    /// All of this one conversation with its snapshots, artifacts, settings and folder; with --thread, all messages of that
    /// thread. A context keeps its name, its personality and its limits. --everything means all conversations
    #[arg(long, conflicts_with_all = ["numbers", "last", "speaker", "on", "matching", "everywhere"])]
    all: bool,

    /// The whole store: every conversation and context, your presets, and the backups that the store has made. Asks for
    /// the words "forget everything", and says what lies elsewhere
    #[arg(long, conflicts_with_all = ["numbers", "last", "all", "only", "speaker", "on", "matching", "everywhere"])]
    everything: bool,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

fn day(text: &str) -> Result<jiff::civil::Date, &'static str> {
    text.parse().map_err(|_| "write a day as 2026-11-20")
}

pub(crate) fn parse_range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number =
        |text: &str| text.trim().parse::<u64>().map_err(|_| "not a number or a range such as 3-9");
    let (first, last) = match text.split_once("..").or_else(|| text.split_once('-')) {
        Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first == 0 || first > last {
        return Err("numbers start at 1, and a range goes upwards".to_owned());
    }
    Ok(first..=last)
}

pub(crate) async fn run(session: &Session, mut args: Args) -> Outcome {
    if args.everything {
        return everything::run(session, args.yes).await;
    }
    let by = selection(session, &args)?;
    let store = session.store().await?;
    if args.everywhere {
        let is_person = matches!(by, Some(Selection::Person(_))) && args.speaker.is_none();
        if session.thread.is_some() || (session.scope != Scope::Default && !is_person) {
            let help = "leave the conversation and the thread out, or --everywhere";
            return Err(Failure::input("--everywhere means every conversation", help));
        }
        let help = "say whose or which: --user, --speaker, --on or --matching";
        let by = by.ok_or_else(|| Failure::input("everywhere alone is everything", help))?;
        return everywhere::run(session, &by, args.only, args.yes).await;
    }
    if let Some(by) = by {
        args.numbers = Recall::new(Arc::new(store.clone())).selected(&by).await?;
    }
    if args.all {
        return forget_whole(session, store, args.yes).await;
    }
    if args.last {
        let newest = match session.thread.as_deref() {
            None => store.read_tail(1).await?.messages,
            thread => store.read_thread(thread, 1).await?.messages,
        };
        let mut first = newest.into_iter().next();
        if let Some(newest) = first.take_if(|_| !args.only) {
            let conversation = session.conversation(Arc::new(store.clone()))?;
            let conversation = match &newest.message.thread_id {
                Some(thread) => conversation.in_thread(thread),
                None => conversation,
            };
            first = conversation.last_exchange().await?.into_iter().next();
        }
        args.numbers = first.iter().map(|stored| stored.seq..=stored.seq).collect();
    }
    let (found, lost) = find(&store, args.numbers, session.thread.as_deref()).await?;
    if found.is_empty() && lost.is_empty() {
        let help = "`sottovoce tail` shows the numbers";
        return Err(Failure::input("there is no such message", help));
    }
    for number in &lost {
        output::note(&format!(
            "number {number} holds no readable message; it will be recorded as gone, unless it is already"
        ));
    }
    // Exactly these messages, even if the range has grown since.
    let numbers = merged_ranges(found.union(&lost).map(|number| *number..=*number));
    let asked = Some((&*numbers, !args.only));
    let Some(forgotten) = forget_if_sure(session, &store, asked, "", args.yes).await? else {
        return Ok(Exit::Done);
    };
    let nothing =
        forgotten.removed.is_empty() && forgotten.numbers == 0 && forgotten.snapshots == 0;
    if found.is_empty() && nothing {
        let are = if lost.len() == 1 { "the number is" } else { "the numbers are" };
        let help = "`sottovoce tail` shows the existing numbers";
        return Err(Failure::input(format!("{are} forgotten already"), help));
    }
    match session.json {
        true => announce::json(&forgotten)?,
        false => announce::done(&forgotten),
    }
    Ok(Exit::Done)
}

/// What is meant, if it is not said by number.
fn selection(session: &Session, args: &Args) -> Result<Option<Selection>, Failure> {
    Ok(match (&args.speaker, args.on, &args.matching, &session.scope) {
        (Some(name), ..) => Some(Selection::Person(name.clone())),
        (_, Some(day), ..) => Some(Selection::Day(day, session.clock().now().time_zone().clone())),
        (_, _, Some(words), _) => {
            Some(Selection::Found(search::parsed(std::slice::from_ref(words))?))
        }
        (_, _, _, Scope::Dm { user }) if args.everywhere => Some(Selection::Person(user.clone())),
        _ => None,
    })
}

/// Forgets these numbers, also the answers to them if that is asked for, or all, as announced after the user confirms;
/// `None` if the user does not. `whose` stands before the number of messages if they are not listed.
async fn forget_if_sure(
    session: &Session,
    store: &FileConversationStore,
    asked: Option<(&[RangeInclusive<u64>], bool)>,
    whose: &str,
    yes: bool,
) -> Result<Option<ForgetReport>, Failure> {
    loop {
        let plan = match asked {
            Some((numbers, true)) => store.plan_forget_exchanges(numbers).await?,
            Some((numbers, false)) => store.plan_forget(numbers).await?,
            None if yes => return Ok(Some(store.forget_all().await?)),
            None => store.plan_forget_all().await?,
        };
        let deed = announce::deed(whose, &plan);
        let same = match whose.is_empty() && !session.json {
            true => elsewhere::found(session, store, &plan).await,
            false => None,
        };
        let show = async || {
            if whose.is_empty() {
                announce::show(store, &plan).await?;
            }
            same.iter().for_each(|same| output::note(same));
            if !plan.answers.is_empty() {
                output::note("--only leaves the answers");
            }
            Ok(())
        };
        let question = format!("Really {deed}?");
        if !session.agrees(yes, &deed, &question, "nothing was deleted", show).await? {
            return Ok(None);
        }
        match store.forget_planned(&plan).await {
            Err(Error::MoreThanAnnounced) if yes => {}
            Err(Error::MoreThanAnnounced) => output::note("the conversation has changed meanwhile"),
            forgotten => {
                same.iter().filter(|_| yes).for_each(|same| output::note(same));
                return Ok(Some(forgotten?));
            }
        }
    }
}

/// The numbers of the messages to forget, and those that were given singly and have no readable message.
async fn find(
    store: &FileConversationStore,
    named: Vec<RangeInclusive<u64>>,
    thread: Option<&str>,
) -> Result<(BTreeSet<u64>, BTreeSet<u64>), Failure> {
    let single = named.iter().filter(|range| range.start() == range.end());
    let mut lost: BTreeSet<u64> = single.map(|range| *range.start()).collect();
    let mut found = BTreeSet::new();
    for range in merged_ranges(named) {
        for stored in store.read_seqs(range).await?.messages {
            lost.remove(&stored.seq);
            if thread.is_none() || stored.message.thread_id.as_deref() == thread {
                found.insert(stored.seq);
            }
        }
    }
    // A number that was never used cannot be lost, and the thread of a lost message is unknown.
    let last = store.read_tail(0).await?.last_seq;
    lost.retain(|number| *number <= last && thread.is_none());
    Ok((found, lost))
}

async fn forget_whole(session: &Session, store: FileConversationStore, yes: bool) -> Outcome {
    let numbers = match &session.thread {
        None => None,
        Some(thread) => {
            let by = Selection::Thread(thread.clone());
            Some(Recall::new(Arc::new(store.clone())).selected(&by).await?)
        }
    };
    let nothing = match &numbers {
        None => {
            let plan = store.plan_forget_all().await?;
            let is_gone =
                session.scope == Scope::Default || !session.scopes(true)?.contains(&session.scope);
            plan.is_nothing() && (plan.keeps_context || is_gone)
        }
        Some(numbers) => numbers.is_empty(),
    };
    if nothing {
        return Err(Failure::input(
            format!("there is nothing to forget in {}", place(session)),
            "`sottovoce scopes` shows all conversations",
        ));
    }
    let whose = format!("{}, ", place(session));
    let asked = numbers.as_deref().map(|numbers| (numbers, false));
    let forgotten = forget_if_sure(session, &store, asked, &whose, yes).await?;
    let Some(forgotten) = forgotten else { return Ok(Exit::Done) };
    let is_whole = forgotten.plan.is_whole() && !forgotten.plan.keeps_context;
    let is_folder_gone = is_whole && store.remove_forgotten().await?;
    if session.json {
        announce::json(&forgotten)?;
        return Ok(Exit::Done);
    }
    announce::done(&forgotten);
    output::note(&match (&session.thread, forgotten.plan.keeps_context) {
        (Some(_), _) => format!("{} is forgotten", place(session)),
        (None, true) => format!(
            "the context {} stays, with its name, its personality and its limits; \
             `sottovoce context delete` lets it go",
            session.scope
        ),
        (None, false) => format!(
            "{} is forgotten; that stays recorded, so that no backup brings it back",
            place(session)
        ),
    });
    if is_folder_gone {
        output::note("its folder is gone, with its settings");
    } else if is_whole && session.scope != Scope::Default {
        let below = session.scope.folder()?;
        let root = session.config()?.storage_root()?;
        let folder = below.iter().fold(root, |folder, name| folder.join(name));
        output::note(&format!(
            "its folder stays, since it holds files that are not the store's or do not open: {}",
            left_in(&folder).join(", ")
        ));
    }
    Ok(Exit::Done)
}

/// Entries in a folder that do not belong to a conversation.
fn left_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_usual = |name: &str| ["head", "lock"].contains(&name) || name.ends_with("_forget.json");
    let mut names: Vec<String> =
        names.filter(|name| !is_usual(name)).map(|name| output::one_line(&name)).collect();
    names.sort();
    names
}

fn place(session: &Session) -> String {
    match &session.thread {
        None => format!("the conversation {}", session.scope),
        Some(thread) => {
            format!("thread {} of the conversation {}", output::one_line(thread), session.scope)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_understood_and_nonsense_is_not() {
        assert_eq!(parse_range("7"), Ok(7..=7));
        assert_eq!(parse_range("3-9"), Ok(3..=9));
        assert_eq!(parse_range("3..9"), Ok(3..=9));
        assert_eq!(parse_range("3..=9"), Ok(3..=9));
        for wrong in ["", "0", "-1", "9-3", "a", "1-", "1-2-3", "18446744073709551616"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
    #[test]
    fn every_number_is_meant_once() {
        assert_eq!(
            merged_ranges(vec![7..=9, 1..=3, 2..=8, 11..=11, 12..=12, 12..=12]),
            [1..=9, 11..=12]
        );
        assert_eq!(merged_ranges(vec![5..=u64::MAX, u64::MAX..=u64::MAX]), [5..=u64::MAX]);
        assert_eq!(merged_ranges(Vec::new()), []);
    }
}
