//! `sottovoce forget --everything`

use sottovoce::persona::StoreContents;
use sottovoce::{Scope, with_causes};

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BOLD, DIM, Object};
use crate::session::Session;

/// What somebody types who wants it.
const WORDS: &str = "forget everything";

pub(super) async fn run(session: &Session, yes: bool) -> Outcome {
    if session.scope != Scope::Default || session.thread.is_some() {
        let help = "leave the conversation out, or say --all for that one";
        return Err(Failure::input("--everything means every conversation", help));
    }
    let contexts = session.contexts()?.ok_or_else(|| session.nothing())?;
    let contents = contexts.store_contents().await?;
    let all = contents.conversations.len() + contents.unreadable.len();
    let counts = counts(&contents);
    let also: Vec<String> = counts.iter().filter_map(counted).collect();
    let also = if also.is_empty() { "nothing".to_owned() } else { also.join(", ") };
    if !yes {
        session.check_attended(&format!("delete everything for ever: {also}"))?;
        show(session, &contents, &also)?;
        if output::answer(&format!("Type \"{WORDS}\" to delete all of it for ever:"))? != WORDS {
            output::note("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    let bar = output::progress(Some(all as u64), "forgetting");
    let left = contexts.forget_everything(|_| bar.inc(1)).await?;
    bar.finish_and_clear();
    let exit = Exit::of(left.is_empty());
    if session.json {
        let row = counts.iter().fold(Object::default(), |row, (name, count)| row.and(name, count));
        let left: Vec<String> = left.iter().map(|(scope, _)| scope.to_string()).collect();
        output::json(&row.and("left", &left))?;
        return Ok(exit);
    }
    let done =
        if left.is_empty() { "deleted for ever" } else { "deleted for ever, but for what is left" };
    for (scope, error) in left {
        let why = error.map_or_else(
            || "something was said in it meanwhile, or its folder holds files that are not the store's".to_owned(),
            |error| with_causes(&error),
        );
        output::warning(&format!("{} is left: {why}", output::one_line(&scope.to_string())));
    }
    output::note(&format!("{done}: {also}"));
    if yes {
        outside(session, &contents)?.iter().for_each(|place| output::note(place));
    }
    Ok(exit)
}

/// How much there is of each kind, by its name in JSON.
fn counts(contents: &StoreContents) -> [(&'static str, usize); 7] {
    let plans = || contents.conversations.iter().map(|(_, plan)| plan);
    [
        ("conversations", contents.conversations.len() + contents.unreadable.len()),
        ("messages", plans().map(|plan| plan.message_count()).sum()),
        ("snapshots", plans().map(|plan| plan.deleted_snapshots.len()).sum()),
        ("artifacts", plans().map(|plan| plan.artifacts.len()).sum()),
        ("contexts", contents.contexts),
        ("presets", contents.presets),
        ("backups", contents.backups),
    ]
}

/// "3 messages"; `None` for 0.
fn counted((name, count): &(&'static str, usize)) -> Option<String> {
    let one = name.strip_suffix('s').unwrap_or(name);
    (*count > 0).then(|| output::counted(*count as u64, one))
}

fn show(session: &Session, contents: &StoreContents, all: &str) -> Result<(), Failure> {
    let root = session.config()?.storage_root()?;
    output::line(format!("{BOLD}All of {} goes{BOLD:#}: {all}", root.display()))?;
    for (scope, plan) in &contents.conversations {
        let scope = output::one_line(&scope.to_string());
        output::line(format!("  {scope}  {DIM}{}{DIM:#}", output::messages(plan.message_count())))?;
    }
    for (scope, error) in &contents.unreadable {
        let scope = output::one_line(&scope.to_string());
        output::line(format!("  {scope}  {DIM}{}{DIM:#}", with_causes(error)))?;
    }
    output::line("  titles, tags, settings, summaries and the search index go with them")?;
    for place in outside(session, contents)? {
        output::line(format!("{DIM}{place}{DIM:#}"))?;
    }
    Ok(())
}

/// What lies outside the store, and what to do about each.
fn outside(session: &Session, contents: &StoreContents) -> Result<Vec<String>, Failure> {
    let config = session.config()?;
    let mut places = Vec::new();
    if contents.syncs {
        places.push("elsewhere, your other devices and their remote: `sottovoce sync` has them forget it too, and `sottovoce sync stop` ends it".to_owned());
    }
    if contents.is_in_teams {
        places.push("elsewhere, your teams: `sottovoce team sync` has the members forget it too, `sottovoce team leave` ends it".to_owned());
    }
    places.push("elsewhere, backups and exports that you made: `find ~ -name '*.sottovoce'` lists sealed ones; delete them with `rm`".to_owned());
    let files = [config.key_file()?, config.own_file()?].into_iter().filter(|file| file.exists());
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    if !files.is_empty() {
        places.push(format!("elsewhere, the key and the settings: `rm {}`", files.join(" ")));
    }
    places.push("elsewhere, what other programs and model servers have copied".to_owned());
    Ok(places)
}
