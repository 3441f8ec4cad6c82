//! What else in the store holds the words that are about to be forgotten.

use std::sync::Arc;

use sottovoce::context::recall::{Recall, SameWords, TellingWords};
use sottovoce::store::ForgetPlan;
use sottovoce::{FileConversationStore, Scope, with_causes};

use crate::cmd::recall::keep_index;
use crate::exit::Failure;
use crate::output;
use crate::session::Session;

/// Says where the same words stand besides what a plan deletes; `None` if they do not, or if they tell nothing. What cannot be looked
/// into is said too, and is no reason to keep the rest.
pub(super) async fn found(
    session: &Session,
    store: &FileConversationStore,
    plan: &ForgetPlan,
) -> Option<String> {
    let own = Recall::new(Arc::new(store.clone()));
    let scopes = session.scopes(true);
    let (words, scopes) = match (own.telling_words(plan).await, scopes) {
        (Ok(words), Ok(scopes)) => (words, scopes),
        (words, _) => {
            let why = words.err().map_or_else(String::new, |error| with_causes(&error));
            return Some(format!("what else holds the same words could not be found out; {why}"));
        }
    };
    let first = words.words().next()?;
    let mut places = Vec::new();
    for scope in scopes {
        let looked = match scope == session.scope {
            true => in_one(&own, &words, plan).await.map(|same| (same, 0)),
            false => in_other(session, scope.clone(), &words).await,
        };
        let place = match scope == session.scope {
            true => "here".to_owned(),
            false => format!("in {}", output::one_line(&scope.to_string())),
        };
        match looked {
            Ok((same, backups)) => {
                places.extend(kinds(same, backups).map(|counted| format!("{counted} {place}")));
            }
            Err(_) => places.push(format!("perhaps more {place}, which cannot be read")),
        }
    }
    let all = words.words().collect::<Vec<_>>().join(", ");
    let places = Some(places.join(", ")).filter(|places| !places.is_empty())?;
    Some(format!(
        "the same words ({all}) stand elsewhere: {places}; `sottovoce search --all {first}` shows the messages"
    ))
}

async fn in_one(
    recall: &Recall,
    words: &TellingWords,
    gone: &ForgetPlan,
) -> Result<SameWords, Failure> {
    let same = recall.same_words(words, gone).await?;
    keep_index(recall).await;
    Ok(same)
}

/// The same of another conversation, with how many daily backups it has if any message holds the words.
async fn in_other(
    session: &Session,
    scope: Scope,
    words: &TellingWords,
) -> Result<(SameWords, usize), Failure> {
    let store = session.open_scope(scope).await?;
    let recall = Recall::new(Arc::new(store.clone()));
    let same = in_one(&recall, words, &ForgetPlan::default()).await?;
    let backups = if same.messages > 0 { store.daily_backups().await?.len() } else { 0 };
    Ok((same, backups))
}

/// "2 messages", "1 summary", …
fn kinds(same: SameWords, backups: usize) -> impl Iterator<Item = String> {
    let kinds = [
        (same.messages, "message", "messages"),
        (same.summaries as u64, "summary", "summaries"),
        (same.snapshots as u64, "snapshot", "snapshots"),
        (same.artifacts as u64, "artifact", "artifacts"),
        (backups as u64, "daily backup", "daily backups"),
    ];
    let some = kinds.into_iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
}
