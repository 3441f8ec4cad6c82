//! What else holds the words of messages that are about to be forgotten, as the index tells.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use sottovoce_recall::SearchQuery;
use zeroize::Zeroizing;

use super::index::Recall;
use super::search::{holds, ranges};
use super::text;
use crate::error::Result;
use crate::store::record::snapshot::root;
use crate::store::{ForgetPlan, StoredMessage, blocking};

/// How many messages are asked for their words, and how many of these the index is asked for.
const MESSAGES: u64 = 64;
const WORDS: usize = 48;
/// How many words are looked for.
const TELLING: usize = 8;
/// How many artifacts are looked into.
const ARTIFACTS: usize = 256;

/// What kind of word it is. Rare words tell something if there are no numbers and no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Number,
    Name,
    Word,
}

impl Kind {
    /// In how many messages of so many such a word may stand and still tell something.
    fn most(self, messages: usize) -> usize {
        match self {
            Self::Number => (messages / 20).max(8),
            Self::Name => (messages / 50).max(5),
            Self::Word => (messages / 500).max(3),
        }
    }
}

/// The words that tell what messages are about: numbers, names, or else words that are rare. `Debug` shows none.
#[derive(Default)]
pub struct TellingWords(Vec<(Zeroizing<String>, SearchQuery)>);

impl TellingWords {
    /// The words.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(word, _)| word.as_str())
    }

    fn queries(&self) -> impl Iterator<Item = &SearchQuery> {
        self.0.iter().map(|(_, query)| query)
    }

    fn are_in(&self, text: &str) -> bool {
        self.queries().any(|query| query.matches(text))
    }
}

impl fmt::Debug for TellingWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TellingWords").field(&self.0.len()).finish()
    }
}

/// How much of a conversation holds some of the words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SameWords {
    /// How many messages, or artifacts that they refer to.
    pub messages: u64,
    /// How many summaries.
    pub summaries: usize,
    /// How many snapshots.
    pub snapshots: usize,
    /// How many artifacts, in their names or the first 64 KiB of their text.
    pub artifacts: usize,
}

impl Recall {
    /// The words that tell what the messages of a plan are about.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn telling_words(&self, plan: &ForgetPlan) -> Result<TellingWords> {
        let mut words = Vec::new();
        for seqs in plan.numbers.lowest(MESSAGES).ranges() {
            for stored in self.store().read_seqs(seqs).await?.messages {
                words.extend(words_of(&stored.message.content));
            }
        }
        words.sort_unstable_by(|(a, one), (b, other)| {
            let lengths = other.len().cmp(&one.len());
            a.cmp(b).then(lengths).then_with(|| one.as_str().cmp(other))
        });
        words.dedup();
        words.truncate(WORDS);
        let mut loaded = self.hold().await;
        loaded.refresh(self.store()).await?;
        blocking(move || {
            let all = loaded.index.len();
            let mut told = Vec::new();
            for (kind, word) in words {
                let query = SearchQuery::of_words(&word);
                let held = loaded.index.search(&query).len();
                if held <= kind.most(all) {
                    told.push((kind, held, word, query));
                }
            }
            told.sort_by_key(|(kind, held, ..)| (*kind, *held));
            let is_named = told.iter().any(|(kind, ..)| *kind != Kind::Word);
            told.retain(|(kind, ..)| !is_named || *kind != Kind::Word);
            let told = told.into_iter().take(TELLING).map(|(_, _, word, query)| (word, query));
            Ok(TellingWords(told.collect()))
        })
        .await
    }

    /// What of this conversation holds some of the words, without what a plan of it deletes.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn same_words(&self, words: &TellingWords, gone: &ForgetPlan) -> Result<SameWords> {
        let (mut found, store) = (SameWords::default(), self.store());
        let mut candidates = BTreeSet::new();
        for query in words.queries() {
            candidates.extend(self.candidates(query).await?.0);
        }
        candidates.retain(|seq| !gone.numbers.contains(*seq));
        for seqs in ranges(&candidates.iter().copied().collect::<Vec<_>>()) {
            let read = store.read_seqs(seqs).await?.messages;
            for stored in read.iter().filter(|stored| candidates.contains(&stored.seq)) {
                found.messages += u64::from(self.holds_any(words, stored).await);
            }
        }
        let profile = store.profile().await?;
        let summaries = profile.summaries.iter();
        let kept = summaries.filter(|summary| !summary.covers_any(&gone.numbers));
        found.summaries = kept.filter(|summary| words.are_in(&summary.text)).count();
        for snapshot in store.snapshots().await?.0 {
            let is_gone = |seq| gone.numbers.contains(seq);
            let mut kept = snapshot
                .messages
                .iter()
                .filter(|saved| !is_gone(saved.seq) && !is_gone(root(saved.seq, &saved.message)));
            let described = snapshot.description.as_deref().is_some_and(|text| words.are_in(text));
            let holds = described || kept.any(|saved| words.are_in(&saved.message.content));
            found.snapshots += usize::from(holds && !gone.deleted_snapshots.contains(&snapshot.id));
        }
        let Some(artifacts) = store.artifact_store() else { return Ok(found) };
        let listed = artifacts.artifacts().await?.0.into_iter().rev().take(ARTIFACTS);
        for artifact in listed.filter(|artifact| !gone.artifacts.contains(&artifact.id)) {
            let holds = words.are_in(&artifact.description())
                || text::beginning(artifacts, &artifact.id, text::MOST)
                    .await
                    .is_ok_and(|text| text.is_some_and(|text| words.are_in(&text)));
            found.artifacts += usize::from(holds);
        }
        Ok(found)
    }

    async fn holds_any(&self, words: &TellingWords, stored: &Arc<StoredMessage>) -> bool {
        for query in words.queries() {
            if holds(&**self.store(), query, stored).await {
                return true;
            }
        }
        false
    }
}

/// The words of a text that may tell something.
fn words_of(text: &str) -> Vec<(Kind, Zeroizing<String>)> {
    let (mut words, mut is_first) = (Vec::new(), true);
    for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        let letters = word.chars().count();
        let is_name = !is_first && word.starts_with(char::is_uppercase) && letters > 1;
        let kind = match word.chars().filter(|c| c.is_numeric()).count() {
            3.. => Some(Kind::Number),
            _ if is_name => Some(Kind::Name),
            _ => Some(Kind::Word).filter(|_| letters >= 7),
        };
        words.extend(kind.map(|kind| (kind, Zeroizing::new(word.to_lowercase()))));
        is_first &= word.is_empty();
        is_first |= part.ends_with(['.', '!', '?', ':', '\n']);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::EncryptionKey;
    use crate::message::{ChatMessage, ChatRole};
    use crate::store::{ConversationStore, StoreOptions};

    #[test]
    fn numbers_and_names_tell_more_than_the_first_word_of_a_sentence() {
        let told = words_of("My PIN is 4711. Tell Anna about it.");
        let told: Vec<_> = told.iter().map(|(kind, word)| (*kind, word.as_str())).collect();
        assert_eq!(told, [(Kind::Name, "pin"), (Kind::Number, "4711"), (Kind::Name, "anna")]);
    }

    #[tokio::test]
    async fn what_else_says_the_number_is_counted_and_what_goes_is_not() {
        let options = StoreOptions::new(EncryptionKey::generate().unwrap());
        let store = Arc::new(options.open_in_memory().await.unwrap());
        let say = async |role, words: &str| {
            let message = ChatMessage::at(role, words, jiff::Timestamp::UNIX_EPOCH);
            store.append_message(message).await.unwrap();
        };
        say(ChatRole::User, "My code is 4711.").await;
        say(ChatRole::Assistant, "Noted: 4711.").await;
        say(ChatRole::User, "Thanks. Tomorrow we go out.").await;
        say(ChatRole::Tool, "code=4711").await;
        let plan = store.plan_forget_exchanges(&[1..=1]).await.unwrap();
        let recall = Recall::new(store.clone());
        let words = recall.telling_words(&plan).await.unwrap();
        assert_eq!(words.words().collect::<Vec<_>>(), ["4711"]);
        assert_eq!(recall.same_words(&words, &plan).await.unwrap().messages, 1);
        let all = recall.same_words(&words, &ForgetPlan::default()).await.unwrap();
        assert_eq!(all.messages, 3);
    }
}
