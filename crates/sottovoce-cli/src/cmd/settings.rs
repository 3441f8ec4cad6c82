//! `sottovoce settings`

use std::num::NonZeroU64;

use sottovoce::store::{AffectedMessages, HiddenMessages, LimitsEffect, Profile, Retention};
use sottovoce::{ConversationStore, Error, FileConversationStore};

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, duration, moment, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
DURATION is a number with its unit: 90s, 30m, 24h, 7d.

  sottovoce --scope dm/42 settings --max-messages 15 --ttl 24h
  sottovoce --scope named/diary settings --max-messages none --ttl none    for ever, whatever is configured
  sottovoce --scope dm/42 settings --window 24h                            prompts hold what was said in the last day
  sottovoce --scope dm/42 settings --default                               as it is configured for all";

/// Shows or changes the limits and the window of one conversation
///
/// Messages beyond the limits are hidden at once, and deleted by `sottovoce cleanup` and by later messages. The
/// command therefore asks before limits hide anything. If new limits no longer hide some messages, it asks whether to
/// keep or delete these. Snapshots are kept until they are deleted. Limits for all conversations are
/// Context.MaxMessages and Context.TtlSeconds; Context.RollingWindow and Context.WindowSeconds set the window of
/// conversations without their own. Without a window a prompt holds the newest messages (Context.LastN).
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The most messages to keep, as whole exchanges; or `none`
    #[arg(long, value_name = "N", value_parser = parse_most)]
    max_messages: Option<u32>,

    /// The time after the last message when the conversation expires; or `none`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<u64>,

    /// Makes the history of prompts, and snapshots, a rolling window of this length; or `none`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    window: Option<u64>,

    /// Removes all of the conversation's own limits
    #[arg(long, conflicts_with_all = ["max_messages", "ttl", "window"])]
    default: bool,

    /// Shows again what the old limits hide and the new ones do not
    #[arg(long)]
    keep_hidden: bool,

    /// Deletes it permanently instead
    #[arg(long, conflicts_with = "keep_hidden")]
    drop_hidden: bool,

    /// Does not ask before messages are hidden
    #[arg(long, short)]
    yes: bool,
}

/// A number of messages; 0 for no limit.
fn parse_most(text: &str) -> Result<u32, String> {
    if text == "none" {
        return Ok(0);
    }
    // An exchange has at least two messages.
    let most = text.parse().ok().filter(|most| *most > 1);
    most.ok_or_else(|| "a number from 2, or none".to_owned())
}

/// A duration in seconds; 0 for no limit.
fn parse_duration(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(0);
    }
    let wrong = || "a duration such as 90s, 30m, 24h or 7d, or none".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let each = match text.get(digits.len()..) {
        Some("") if !digits.is_empty() => {
            return Err(format!(
                "a number with its unit: {digits}s, {digits}m, {digits}h or {digits}d"
            ));
        }
        Some("s") => 1,
        Some("m" | "min") => 60,
        Some("h") => 3600,
        Some("d") => 86_400,
        Some("w") => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: NonZeroU64 = digits.parse().map_err(|_| wrong())?;
    number.get().checked_mul(each).ok_or_else(wrong)
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let changes = args.default || args.max_messages.is_some() || args.ttl.is_some();
    let mut done = None;
    let profile = if changes || args.window.is_some() {
        let store = session.store_or_make().await?;
        if changes {
            let now = store.profile().await?.retention;
            let wanted = wanted(now, &args, config.retention());
            match change_limits(session, &store, wanted, &args).await? {
                Some(change) => done = Some(change),
                None => return Ok(Exit::Done),
            }
        }
        let window = args.window;
        let change = move |profile: &mut Profile| {
            if args.default || window.is_some() {
                profile.window_seconds = window.and_then(NonZeroU64::new);
                profile.rolling_window = window.map(|seconds| seconds > 0);
            }
        };
        store.change_profile(Box::new(change)).await?
    } else {
        let store = session.store_or_empty().await?;
        Profile::clone(&*store.profile().await?)
    };
    let retention = profile.retention.unwrap_or_else(|| config.retention());
    let window = profile.window_seconds.map_or(config.context.window_seconds, NonZeroU64::get);
    let rolling_window = profile.rolling_window.unwrap_or(config.context.rolling_window);
    let own_window = profile.rolling_window.is_some() || profile.window_seconds.is_some();
    if session.json {
        let returned = |fate| {
            let (effect, hidden) = done.as_ref()?;
            Some(if *hidden == fate { effect.returns.messages } else { 0 })
        };
        let row = object!(
            "scope": session.scope.to_string(), "maxMessages": retention.max_messages,
            "ttlSeconds": retention.ttl_seconds, "windowSeconds": window,
            "rollingWindow": rolling_window, "ownRetention": profile.retention.is_some(),
            "ownWindow": own_window,
        );
        let row = row.maybe("hidden", done.as_ref().map(|(effect, _)| effect.hides.messages));
        let row = row.maybe("shownAgain", returned(HiddenMessages::Keep));
        output::json(&row.maybe("deleted", returned(HiddenMessages::Delete)))?;
        return Ok(Exit::Done);
    }
    let own = |is_own: bool| if is_own { "" } else { "  (as configured for all)" };
    let row = |name: &str, value: String, is_own| {
        output::line(format!("{name:<14} {value}{}", own(is_own)))
    };
    row("scope", session.scope.to_string(), true)?;
    let most = retention.max_messages.map_or_else(|| "none".to_owned(), |most| most.to_string());
    let ttl = retention.ttl_seconds.map_or_else(|| "none".to_owned(), |ttl| duration(ttl.get()));
    row("max-messages", most, profile.retention.is_some())?;
    row("ttl", ttl, profile.retention.is_some())?;
    let rolls = if rolling_window { duration(window) } else { "none".to_owned() };
    row("window", rolls, own_window)?;
    if let Some((LimitsEffect { hides, returns, .. }, hidden)) = &done {
        for (concerned, what) in [
            (hides, "are hidden, and will be deleted"),
            (
                returns,
                if *hidden == HiddenMessages::Keep { "are shown again" } else { "are deleted" },
            ),
        ] {
            if concerned.messages > 0 {
                output::note(&format!("{} {what}", messages(concerned)));
            }
        }
    }
    Ok(Exit::Done)
}

/// "12 messages, said from … to …,"
fn messages(concerned: &AffectedMessages) -> String {
    let number = output::counted(concerned.messages, "message");
    match (concerned.first, concerned.last) {
        (Some(first), Some(last)) if concerned.messages > 1 => {
            format!("{number}, said from {} to {},", moment(first), moment(last))
        }
        (Some(first), _) => format!("{number}, said at {},", moment(first)),
        _ => number,
    }
}

/// Changes the limits after the user agrees to the effect; `None` if the user does not.
async fn change_limits(
    session: &Session,
    store: &FileConversationStore,
    wanted: Option<Retention>,
    args: &Args,
) -> Result<Option<(LimitsEffect, HiddenMessages)>, Failure> {
    loop {
        let effect = store.limits_effect(wanted).await?;
        let deed = format!(
            "hide {} at once; they will be deleted, and cannot come back then",
            messages(&effect.hides)
        );
        let (yes, question) =
            (args.yes || effect.hides.messages == 0, format!("This would {deed}. Really?"));
        if !session.agrees(yes, &deed, &question, "nothing was changed", async || Ok(())).await? {
            return Ok(None);
        }
        let Some(hidden) = fate(session, &effect, args)? else {
            output::note("nothing was changed");
            return Ok(None);
        };
        match store.change_limits(wanted, hidden, &effect).await {
            Err(Error::MoreThanAnnounced) => output::note("the conversation has changed meanwhile"),
            changed => {
                changed?;
                return Ok(Some((effect, hidden)));
            }
        }
    }
}

/// What happens to messages that would be shown again; `None` if the user wants neither.
fn fate(
    session: &Session,
    effect: &LimitsEffect,
    args: &Args,
) -> Result<Option<HiddenMessages>, Failure> {
    if args.drop_hidden {
        return Ok(Some(HiddenMessages::Delete));
    }
    if effect.returns.messages == 0 || args.keep_hidden {
        return Ok(Some(HiddenMessages::Keep));
    }
    let what = format!("{} are over the old limits and still stored", messages(&effect.returns));
    if session.check_attended("").is_err() {
        return Err(Failure::input(
            what,
            "say --keep-hidden to show them again, or --drop-hidden to delete them for ever",
        ));
    }
    output::note(&what);
    if output::confirmed("Keep them, so that they are shown again?")? {
        return Ok(Some(HiddenMessages::Keep));
    }
    let delete = output::confirmed("Delete them for ever?")?;
    Ok(delete.then_some(HiddenMessages::Delete))
}

/// The conversation's own limits after the change. A limit that is not given keeps its value.
fn wanted(own: Option<Retention>, args: &Args, default: Retention) -> Option<Retention> {
    if args.default {
        return None;
    }
    let mut retention = own.unwrap_or(default);
    if let Some(most) = args.max_messages {
        retention = retention.max_messages(most);
    }
    if let Some(ttl) = args.ttl {
        retention = retention.ttl_seconds(ttl);
    }
    Some(retention)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_numbers_are_understood_and_nonsense_is_not() {
        for (text, seconds) in
            [("90s", 90), ("30m", 1800), ("24h", 86_400), ("7d", 604_800), ("1w", 604_800)]
        {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        assert_eq!(parse_duration("none"), Ok(0));
        for wrong in
            ["", "0", "90", "0h", "h", "-1h", "1.5h", "1y", "24 h", "99999999999999999999d"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_most("15"), Ok(15));
        for wrong in ["", "0", "1", "-1", "many"] {
            assert!(parse_most(wrong).is_err(), "{wrong}");
        }
    }
}
