//! The contract of answers: they belong to utterances.

use super::*;
use crate::store::Retention;

pub(super) async fn an_answer_needs_its_utterance<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (one, other) = (at.open().await?, at.open().await?);
    let utterances = one.append_all(numbered(1..=3)).await?;
    let [first, second, third] = utterances.as_slice() else {
        return Err(BrokenRule::new("not three messages".to_owned()));
    };
    same!(one.append_answers(answer("to 1"), first).await?.len(), 1);
    other.forget(&[2..=2]).await?;
    refused!(one.append_answers(answer("to 2"), second).await, Error::UtteranceForgotten);
    // A forgotten utterance does not affect the answer to another one, however old that is.
    one.append_all(numbered(5..=300)).await?;
    at.open().await?.append_answers(answer("to 3"), third).await?;
    let newest = other.read_tail(1).await?;
    same!(texts(Ok(newest.clone()))?, ["to 3"]);
    other.forget(&[1..=newest.last_seq]).await?;
    for utterance in &utterances {
        refused!(one.append_answers(answer("late"), utterance).await, Error::UtteranceForgotten);
    }
    holds!(texts(one.read_tail(9).await)?.is_empty());
    Ok(())
}

pub(super) async fn an_answer_to_another_message_of_that_number_is_refused<F>(
    at: Fixture<'_, F>,
) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    // As if the whole conversation was removed and begun again.
    let name = format!("{}_before", at.setup.name);
    let removed = (at.open)(StoreSetup { name, ..at.setup.clone() }).await?;
    let utterance = removed.append_message(said("before")).await?;
    let store = at.open().await?;
    let now = said_at("after", "2025-08-24T17:00:00Z");
    same!(store.append_message(now).await?.seq, utterance.seq);
    refused!(store.append_answers(answer("late"), &utterance).await, Error::UtteranceForgotten);
    let scope = Scope::Dm { user: "42".into() };
    let elsewhere = (at.open)(StoreSetup { scope, ..at.setup.clone() }).await?;
    let utterance = elsewhere.append_message(said("there")).await?;
    refused!(store.append_answers(answer("here too"), &utterance).await, Error::OtherScope);
    same!(texts(store.read_tail(9).await)?, ["after"]);
    Ok(())
}

pub(super) async fn an_answer_to_what_was_cleared_is_no_context<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (one, other) = (at.open().await?, at.open().await?);
    let before = one.append_message(said("before")).await?;
    other.clear().await?;
    let after = other.append_message(said("after")).await?;
    let late = one.append_answers(answer("late"), &before).await?;
    let prompt = one.append_answers(answer("prompt"), &after).await?;
    let profile = other.profile().await?;
    holds!(late.iter().all(|stored| profile.is_pruned(stored.seq)));
    holds!(!prompt.iter().any(|stored| profile.is_pruned(stored.seq)));
    same!(texts(other.read_tail(9).await)?, ["before", "after", "late", "prompt"]);
    Ok(())
}

pub(super) async fn an_answer_to_an_expired_utterance_is_refused<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let policy = StorePolicy::default().retention(Retention::FOREVER.ttl_seconds(60));
    let store = at.open_with(policy).await?;
    let utterance = store.append_message(said("old")).await?;
    at.set_clock("2025-08-24T17:00:00Z");
    refused!(store.append_answers(answer("late"), &utterance).await, Error::UtteranceForgotten);
    holds!(texts(store.read_tail(9).await)?.is_empty());
    Ok(())
}
