//! The head: how far a conversation goes, which records are its newest, and the cheap sign that it has changed.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::store::record::encoding::object;
use crate::store::record::name::{NameTime, RecordKind, RecordName};

/// Bytes of a head's plaintext, so that every head file has the same length and can be overwritten in place. With its
/// envelope it fits into a disk's sector of 512 bytes, which is written whole or not at all.
const LENGTH: usize = 256;

/// The most records that a head names.
pub(crate) const NAMED: usize = 8;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The highest number ever given.
    pub(crate) seq: u64,
    /// The profile's revision.
    profile: u64,
    /// The mark that the folder had when this was written. While it has it still, no name in it has changed since.
    pub(crate) mark: Option<u64>,
    /// The mark of the folder of packs, where there was one: what is published or put back there is seen by it.
    pub(crate) packs: Option<u64>,
    /// Tells heads apart between which somebody else has changed names: what was remembered before is no longer all
    /// there is.
    since: u32,
    /// The number of the newest record of what was forgotten, 0 where nothing was.
    forget: u64,
    /// The number under which the list of conversations has this one, 0 where it has not.
    listed: u64,
    newest: [Option<(NameTime, RecordKind)>; NAMED],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_nothing(run: &(u32, u64, u64)) -> bool {
    *run == (0, 0, 0)
}

/// As it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<'a> {
    seq: u64,
    profile: u64,
    #[serde(deserialize_with = "Option::deserialize")]
    mark: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packs: Option<u64>,
    /// Only in heads of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    since: u32,
    /// `since`, `forget` and `listed`, without their names: the room is needed for the newest.
    #[serde(default, skip_serializing_if = "is_nothing")]
    run: (u32, u64, u64),
    newest: &'a str,
}

impl Head {
    /// The head of a conversation whose newest records, the newest first, are these. As many as there is room for are
    /// named, and only messages whose numbers are the highest, without a gap.
    pub(crate) fn after(
        self,
        seq: u64,
        (mark, packs): (Option<u64>, Option<u64>),
        newest: impl Iterator<Item = RecordName>,
    ) -> Self {
        let mut head = Self { seq, mark, packs, newest: [None; NAMED], ..self };
        let room = LENGTH.saturating_sub(head.text("").len()) / ITEM;
        let mut numbers = (1..=seq).rev();
        let highest = newest.take_while(|name| numbers.next() == Some(name.seq));
        for (place, name) in head.newest.iter_mut().take(room).zip(highest) {
            *place = Some((name.time, name.kind));
        }
        head
    }

    /// The revision of the conversation's settings; 0 where it has none of its own.
    pub(crate) fn profile(&self) -> u64 {
        self.profile
    }

    /// The same with other settings.
    pub(crate) fn with_profile(self, rev: u64) -> Self {
        Self { profile: rev, ..self }
    }

    /// The number under which the catalog has the conversation; 0 where it has not.
    pub(crate) fn listed(&self) -> u64 {
        self.listed
    }

    /// The same of a conversation that the catalog has under that number.
    pub(crate) fn with_listed(self, number: u64) -> Self {
        Self { listed: number, ..self }
    }

    /// The number of the newest record of what was forgotten that there has been.
    pub(crate) fn forget(&self) -> u64 {
        self.forget
    }

    /// The same after that record of what was forgotten, unless there has been a later one.
    pub(crate) fn with_forget(self, seq: u64) -> Self {
        Self { forget: self.forget.max(seq), ..self }
    }

    /// The same of another run of heads, which a mark that was not there before tells apart. It says less of its newest
    /// then: its place is taken before theirs.
    pub(crate) fn since(self, mark: u64) -> Self {
        Self { since: mark as u32, newest: [None; NAMED], ..self }
    }

    /// Whether both are of one run, in which nobody but those who wrote the heads has changed names.
    pub(crate) fn is_of_one_run_with(&self, other: &Self) -> bool {
        self.since == other.since
    }

    /// The newest records in the conversation's order, the newest first, which have the highest numbers too. All are
    /// messages.
    pub(crate) fn newest(&self) -> impl Iterator<Item = RecordName> + '_ {
        let named = self.newest.iter().map_while(|named| *named);
        named.zip((1..=self.seq).rev()).map(|((time, kind), seq)| RecordName { time, seq, kind })
    }

    fn text(&self, newest: &str) -> String {
        let Self { seq, profile, mark, packs, since, forget, listed, .. } = *self;
        let run = (since, forget, listed);
        serde_json::to_string(&Text { seq, profile, mark, packs, since: 0, run, newest })
            .unwrap_or_default()
    }

    pub(crate) fn to_plaintext(self) -> Zeroizing<Vec<u8>> {
        let mut newest = String::with_capacity(LENGTH);
        for (time, kind) in self.newest.into_iter().flatten() {
            newest.push_str(&time.digits());
            newest.push(kind.letter());
        }
        Zeroizing::new(format!("{:LENGTH$}", self.text(&newest)).into_bytes())
    }

    pub(crate) fn parse(plaintext: &[u8]) -> Option<Self> {
        let Text { seq, profile, mark, packs, since, run, newest: text } =
            object(plaintext).filter(|_| plaintext.len() == LENGTH)?;
        let mut newest = [None; NAMED];
        let items = text.as_bytes().chunks(ITEM);
        if items.len() > NAMED || items.len() as u64 > seq {
            return None;
        }
        for (place, item) in newest.iter_mut().zip(items) {
            let (letter, digits) = item.split_last()?;
            let time = NameTime::from_digits(digits)?;
            *place = Some((time, RecordKind::of_letter(*letter)?));
        }
        let (since, forget, listed) = if is_nothing(&run) { (since, 0, 0) } else { run };
        Some(Self { seq, profile, mark, packs, since, forget, listed, newest })
    }
}

/// The length of one of the newest: the 17 digits of its time and the first letter of its role.
const ITEM: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(seq: u64) -> Vec<RecordName> {
        let kinds = [RecordKind::User, RecordKind::Assistant, RecordKind::System, RecordKind::Tool];
        (seq.saturating_sub(11).max(1)..=seq)
            .rev()
            .map(|seq| {
                let kind = kinds[(seq % 4) as usize];
                format!("20250824T163625{:03}Z_{seq:04}_{kind}.json", seq % 1000).parse().unwrap()
            })
            .collect()
    }

    #[test]
    fn every_head_has_the_same_length_and_comes_back() {
        for seq in [0, 1, 9_999, 1_000_000, u64::MAX] {
            for mark in [None, Some(0), Some(u64::MAX)] {
                let head = mark.map_or(Head::default(), |mark| Head::default().since(mark));
                let usual = seq.min(1_000_000);
                let head = head.with_forget(usual).with_listed(usual.min(10_000));
                let head = head.after(seq, (mark, mark), named(seq).into_iter());
                let text = head.to_plaintext();
                assert_eq!(text.len(), LENGTH);
                let parsed = Head::parse(&text).unwrap();
                assert_eq!((parsed.seq, parsed.mark, parsed.packs), (seq, mark, mark));
                assert!(parsed.is_of_one_run_with(&head));
                let names: Vec<_> = parsed.newest().collect();
                // A prompt wants the six newest.
                let least = if seq == usual { 6 } else { 5 };
                assert!(names.len() >= seq.min(least) as usize, "{}", names.len());
                assert_eq!((parsed.forget(), parsed.listed()), (usual, usual.min(10_000)));
                assert_eq!(names, named(seq)[..names.len()]);
            }
        }
    }

    #[test]
    fn only_an_unbroken_run_of_the_highest_numbers_is_named() {
        let mut names = named(50);
        names.remove(3);
        let head = Head::default().after(50, (None, None), names.iter().copied());
        assert!(head.newest().eq(names[..3].iter().copied()));
        assert_eq!(Head::default().after(51, (None, None), names.into_iter()).newest().count(), 0);
    }

    #[test]
    fn a_head_of_another_form_is_none() {
        let padded = |text: &str| Head::parse(format!("{text:LENGTH$}").as_bytes());
        let good = r#"{"seq":1,"profile":0,"mark":null,"packs":7,"newest":"20250824163625123u"}"#;
        assert!(padded(good).is_some());
        assert!(Head::parse(good.as_bytes()).is_none());
        for wrong in [
            good.replace("5123u", "5123f"),
            good.replace("5123u", "5123x"),
            good.replace("5123u", "5123"),
            good.replace("20250824", "20251324"),
            good.replace("20250824", "+0250824"),
            good.replace(r#""seq":1"#, r#""seq":0"#),
            good.replace(r#""mark":null"#, r#""mark":-1"#),
            good.replace(r#""mark":null,"#, ""),
            good.replace(r#""packs":7"#, r#""packs":7,"more":1"#),
        ] {
            assert!(padded(&wrong).is_none(), "{wrong}");
        }
    }
}
