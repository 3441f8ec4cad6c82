//! What is to be forgotten, as the owner selected it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff::civil::Date;
use sottovoce::context::recall::{SearchQuery, Selection as By};
use sottovoce::store::merged_ranges;
use sottovoce::{ConversationStore, Result};

use crate::english as en;
use crate::failure::Failure;
use crate::room::Room;
use crate::view::search::not_understood;

/// Among how many of the newest messages speakers are looked for.
const SPEAKERS: usize = 256;

/// The fields of a form that selects something.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) what: String,
    pub(crate) numbers: String,
    pub(crate) day: String,
    pub(crate) speaker: String,
    pub(crate) query: String,
}

/// What a selection means.
pub(crate) enum Selected {
    Numbers(Vec<RangeInclusive<u64>>),
    Whole,
}

impl Selection {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut selection = Self::default();
        for (name, value) in form_urlencoded::parse(bytes) {
            match &*name {
                "what" => selection.what = value.into_owned(),
                // Of messages that were picked, each is a field of its own.
                "numbers" | "seq" => selection.numbers += &format!("{value},"),
                "day" => selection.day = value.into_owned(),
                "speaker" => selection.speaker = value.into_owned(),
                "q" => selection.query = value.into_owned(),
                _ => {}
            }
        }
        selection
    }

    pub(crate) async fn find(&self, room: &Room) -> Result<Selected, Failure> {
        let numbers = match self.what.as_str() {
            "picked" | "numbers" => ranges(&self.numbers)
                .ok_or_else(|| Failure::wrong(en::NOT_NUMBERS, en::WRITE_NUMBERS))?,
            "day" => {
                let wrong = || Failure::wrong(en::NOT_A_DAY, en::WRITE_A_DAY);
                let day: Date = self.day.parse().map_err(|_| wrong())?;
                Self::meant(room, By::Day(day, room.zone())).await?
            }
            "person" if !self.speaker.is_empty() => {
                Self::meant(room, By::Person(self.speaker.clone())).await?
            }
            "found" => {
                let query = SearchQuery::parse(&self.query).map_err(|unknown| {
                    Failure::wrong(not_understood(&unknown), en::WRITE_A_SEARCH)
                })?;
                Self::meant(room, By::Found(query)).await?
            }
            "whole" => return Ok(Selected::Whole),
            _ => return Err(Failure::wrong(en::NOTHING_SELECTED, en::SELECT_SOMETHING)),
        };
        let last = room.store.read_tail(0).await?.last_seq;
        let numbers: Vec<RangeInclusive<u64>> = numbers
            .into_iter()
            .map(|range: RangeInclusive<u64>| *range.start()..=(*range.end()).min(last))
            .filter(|range| !range.is_empty() && *range.start() > 0)
            .collect();
        match numbers.is_empty() {
            true => Err(Failure::wrong(en::NOTHING_SELECTED, en::SELECT_SOMETHING)),
            false => Ok(Selected::Numbers(merged_ranges(numbers))),
        }
    }

    async fn meant(room: &Room, by: By) -> Result<Vec<RangeInclusive<u64>>> {
        room.conversation.index().selected(&by).await
    }
}

/// The speakers of the newest messages, for the owner to choose from.
pub(crate) async fn speakers(room: &Room) -> Result<BTreeSet<String>> {
    let read = room.store.read_tail(SPEAKERS).await?;
    Ok(read
        .messages
        .iter()
        .filter_map(|stored| stored.message.speaker().map(str::to_owned))
        .collect())
}

/// "7, 9-12" as ranges; `None` if it is something else.
fn ranges(text: &str) -> Option<Vec<RangeInclusive<u64>>> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    text.split([',', ';'])
        .filter(|part| !part.trim().is_empty())
        .map(|part| match part.split_once(['-', '–']) {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(first..=last)
            }
            None => number(part).map(|number| number..=number),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_understood_and_nonsense_is_not() {
        assert_eq!(ranges("7, 9-12").unwrap(), [7..=7, 9..=12]);
        for wrong in ["0", "a", "9-3", "1-2-3", "-1", "18446744073709551616"] {
            assert!(ranges(wrong).is_none(), "{wrong}");
        }
        assert_eq!(merged_ranges(vec![7..=9, 1..=3, 4..=5, 8..=8]), [1..=5, 7..=9]);
    }
}
