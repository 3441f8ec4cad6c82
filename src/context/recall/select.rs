//! Which messages somebody means who does not name their numbers.

use std::ops::RangeInclusive;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use sottovoce_recall::SearchQuery;

use super::index::Recall;
use crate::error::Result;
use crate::message::ChatRole;
use crate::scope::Scope;
use crate::store::{StoredMessage, merged_ranges};

/// How many numbers one read covers.
const STEP: u64 = 4096;

/// What is meant.
#[derive(Debug, Clone)]
pub enum Selection {
    /// What a person said: by the speaker's name in any letter case, and in a conversation of that person's own.
    Person(String),
    /// What was said in a thread.
    Thread(String),
    /// What was said on a day of this zone's calendar.
    Day(Date, TimeZone),
    /// What a search finds.
    Found(SearchQuery),
}

impl Recall {
    /// The numbers of the messages that are meant.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn selected(&self, selection: &Selection) -> Result<Vec<RangeInclusive<u64>>> {
        let store = self.store();
        let mut numbers = Vec::new();
        match selection {
            Selection::Person(_) | Selection::Thread(_) | Selection::Day(..) => {
                let last = store.read_tail(0).await?.last_seq;
                for first in (1..=last).step_by(STEP as usize) {
                    let read = store.read_seqs(first..=last.min(first + STEP - 1)).await?.messages;
                    let said = read.iter().filter(|stored| selection.means(stored));
                    numbers.extend(said.map(|stored| stored.seq));
                }
            }
            Selection::Found(query) => {
                let found = self.search(query, None, usize::MAX).await?;
                numbers.extend(found.hits.iter().map(|stored| stored.seq));
            }
        }
        Ok(merged_ranges(numbers.into_iter().map(|number| number..=number)))
    }
}

impl Selection {
    /// Whether a message is meant that was read for it.
    fn means(&self, stored: &StoredMessage) -> bool {
        let message = &stored.message;
        let name = match self {
            Self::Person(name) => name.to_lowercase(),
            Self::Thread(thread) => return message.thread_id.as_ref() == Some(thread),
            Self::Day(day, zone) => return zone.to_datetime(message.said_at()).date() == *day,
            Self::Found(_) => return true,
        };
        match (&*stored.scope, message.speaker()) {
            (_, Some(speaker)) => speaker.to_lowercase() == name,
            (Scope::Dm { user } | Scope::Guild { user, .. }, None) => {
                message.role == ChatRole::User && user.to_lowercase() == name
            }
            _ => false,
        }
    }
}
