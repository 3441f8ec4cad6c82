//! `sottovoce forget … --everywhere`: what is meant in every conversation, by one question.

use std::sync::Arc;

use sottovoce::context::recall::{Recall, Selection};
use sottovoce::store::ForgetPlan;
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope, with_causes};

use super::announce;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BOLD};
use crate::session::Session;

pub(super) async fn run(session: &Session, by: &Selection, only: bool, yes: bool) -> Outcome {
    let (mut planned, mut exit) = (Vec::new(), Exit::Done);
    let mut warn = |scope: &str, what: &str| {
        output::warning(&format!("{scope}: {what}"));
        exit = Exit::Problems;
    };
    for scope in session.scopes(true)? {
        let place = output::one_line(&scope.to_string());
        match plan(session, scope, by, only).await {
            Ok(Some((store, plan))) => planned.push((place, store, plan)),
            Ok(None) => {}
            Err(Failure::Library(error)) => warn(&place, &with_causes(&error)),
            Err(failure) => return Err(failure),
        }
    }
    if planned.is_empty() {
        let help = "`sottovoce search --all` finds what words stand in";
        return Err(Failure::input("there is no such message in any conversation", help));
    }
    let all = planned.iter().map(|(_, _, plan)| plan.message_count()).sum();
    let places = output::counted(planned.len() as u64, "conversation");
    let deed = format!("delete {} in {places} for ever", output::messages(all));
    let show = async || {
        for (place, store, plan) in &planned {
            output::line(format!("{BOLD}{place}{BOLD:#}"))?;
            announce::show(store, plan).await?;
            output::note(&format!("this would {}", announce::deed("", plan)));
        }
        Ok(())
    };
    let question = format!("Really {deed}?");
    if !session.agrees(yes, &deed, &question, "nothing was deleted", show).await? {
        return Ok(Exit::Done);
    }
    for (place, store, plan) in &planned {
        match store.forget_planned(plan).await {
            Ok(forgotten) if session.json => announce::json(&forgotten)?,
            Ok(forgotten) => {
                output::note(&format!("{place}:"));
                announce::done(&forgotten);
            }
            Err(Error::MoreThanAnnounced) => {
                warn(
                    place,
                    "it has changed meanwhile, and nothing of it was deleted; run this again",
                );
            }
            Err(error) => warn(place, &with_causes(&error)),
        }
    }
    Ok(exit)
}

/// What goes of one conversation; `None` if nothing in it is meant.
async fn plan(
    session: &Session,
    scope: Scope,
    by: &Selection,
    only: bool,
) -> Result<Option<(FileConversationStore, ForgetPlan)>, Failure> {
    let store = session.open_scope(scope).await?;
    let numbers = Recall::new(Arc::new(store.clone())).selected(by).await?;
    let plan = match only {
        _ if numbers.is_empty() => return Ok(None),
        true => store.plan_forget(&numbers).await?,
        false => store.plan_forget_exchanges(&numbers).await?,
    };
    Ok((!plan.is_nothing()).then_some((store, plan)))
}
