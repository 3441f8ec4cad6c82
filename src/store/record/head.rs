//! The head: a conversation's highest number, the names of its newest records, and a cheap sign of change.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::store::record::encoding::object;
use crate::store::record::finding::FindingKind;
use crate::store::record::name::{NameTime, RecordKind, RecordName};

/// Length of a head's plaintext in bytes. All head files have the same length and are overwritten in place. A sealed
/// head fits in one disk sector of 512 bytes, which a disk writes completely or not at all.
const LENGTH: usize = 256;

/// The most records that a head names.
pub(crate) const NAMED: usize = 8;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The highest number that was ever assigned.
    pub(crate) seq: u64,
    /// The revision of the settings.
    profile: u64,
    /// The folder's change stamp when the head was written. While the stamp is the same, no name in the folder has
    /// changed.
    pub(crate) stamp: Option<u64>,
    /// The change stamp of the folder of packs, if there was one. It shows what was published or put back there.
    pub(crate) packs: Option<u64>,
    /// Separates runs of heads between which another program changed names. A reader that remembers an earlier run
    /// cannot rely on its memory.
    since: u32,
    /// The number of the newest forget record; 0 if there is none.
    forget: u64,
    /// The conversation's number in the catalog; 0 if the catalog does not list it.
    listed: u64,
    newest: [Option<(NameTime, RecordKind)>; NAMED],
    /// When the conversation had come further, as its witness says. Not stored.
    put_back: Option<NameTime>,
}

/// The head as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<'a> {
    seq: u64,
    profile: u64,
    #[serde(deserialize_with = "Option::deserialize")]
    mark: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    packs: Option<u64>,
    /// `since`, `forget` and `listed` without field names, to save room for the newest records.
    #[serde(default)]
    run: (u32, u64, u64),
    /// Only heads of the first builds have this field, which tells nothing.
    #[serde(default, skip_serializing, rename = "since")]
    _since: u32,
    newest: &'a str,
}

impl Head {
    /// The head after `newest` records were written, given newest first. It names as many as fit, and only messages
    /// whose numbers are the highest without a gap.
    pub(crate) fn after(
        self,
        seq: u64,
        (stamp, packs): (Option<u64>, Option<u64>),
        newest: impl Iterator<Item = RecordName>,
    ) -> Self {
        let mut head = Self { seq, stamp, packs, newest: [None; NAMED], put_back: None, ..self };
        let room = LENGTH.saturating_sub(head.text("").len()) / ITEM;
        let mut numbers = (1..=seq).rev();
        let highest = newest.take_while(|name| numbers.next() == Some(name.seq));
        for (place, name) in head.newest.iter_mut().take(room).zip(highest) {
            *place = Some((name.time, name.kind));
        }
        head
    }

    /// The revision of the settings; 0 if the conversation has none of its own.
    pub(crate) fn profile(&self) -> u64 {
        self.profile
    }

    /// This head with another revision of the settings.
    pub(crate) fn with_profile(self, rev: u64) -> Self {
        Self { profile: rev, ..self }
    }

    /// The conversation's number in the catalog; 0 if the catalog does not list it.
    pub(crate) fn listed(&self) -> u64 {
        self.listed
    }

    /// This head with this number in the catalog.
    pub(crate) fn with_listed(self, number: u64) -> Self {
        Self { listed: number, ..self }
    }

    /// The number of the newest forget record that there ever was.
    pub(crate) fn forget(&self) -> u64 {
        self.forget
    }

    /// This head with this forget record, unless it already names a later one.
    pub(crate) fn with_forget(self, seq: u64) -> Self {
        Self { forget: self.forget.max(seq), ..self }
    }

    /// This head in a new run, told apart by a change stamp that did not exist before. The run takes room from
    /// the newest records.
    pub(crate) fn since(self, mark: u64) -> Self {
        Self { since: mark as u32, newest: [None; NAMED], ..self }
    }

    /// Whether both heads belong to one run: only the heads' own writers have changed names between them.
    pub(crate) fn is_of_one_run_with(&self, other: &Self) -> bool {
        self.since == other.since
    }

    /// This head, unless a witness records more: then what both record, without any newest record. A conversation that
    /// may have been made anew under its name has another number in the catalog then.
    pub(crate) fn not_before(self, witness: &Self, may_be_new: bool) -> Self {
        let of = |head: &Self| (head.seq, head.profile, head.forget);
        let ((seq, profile, forget), then) = (of(&self), of(witness));
        let is_behind = seq < then.0 || profile < then.1 || forget < then.2;
        if !is_behind || (may_be_new && self.listed != witness.listed) {
            return self;
        }
        let last = witness.newest().next().map_or(NameTime::MIN, |last| last.time);
        Self {
            seq: seq.max(then.0),
            profile: profile.max(then.1),
            forget: forget.max(then.2),
            stamp: None,
            packs: None,
            newest: [None; NAMED],
            put_back: Some(last),
            ..self
        }
    }

    /// What it means that there are fewer records than this head tells of.
    pub(crate) fn loss(&self) -> FindingKind {
        match self.put_back {
            Some(NameTime::MIN) => FindingKind::PutBack { since: None },
            Some(last) => FindingKind::PutBack { since: last.timestamp() },
            None => FindingKind::TailTruncated,
        }
    }

    /// The newest records, newest first. They have the highest numbers, and all are messages.
    pub(crate) fn newest(&self) -> impl Iterator<Item = RecordName> + '_ {
        let named = self.newest.iter().map_while(|named| *named);
        named.zip((1..=self.seq).rev()).map(|((time, kind), seq)| RecordName { time, seq, kind })
    }

    fn text(&self, newest: &str) -> String {
        let Self { seq, profile, stamp, packs, since, forget, listed, .. } = *self;
        let (mark, run, _since) = (stamp, (since, forget, listed), 0);
        serde_json::to_string(&Text { seq, profile, mark, packs, run, newest, _since })
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
        let it: Text<'_> = object(plaintext).filter(|_| plaintext.len() == LENGTH)?;
        let Text { seq, profile, mark: stamp, packs, run: (since, forget, listed), .. } = it;
        let mut newest = [None; NAMED];
        let items = it.newest.as_bytes().chunks(ITEM);
        if items.len() > NAMED || items.len() as u64 > seq {
            return None;
        }
        for (place, item) in newest.iter_mut().zip(items) {
            let (letter, digits) = item.split_last()?;
            let time = NameTime::from_digits(digits)?;
            *place = Some((time, RecordKind::of_letter(*letter)?));
        }
        Some(Self { seq, profile, stamp, packs, since, forget, listed, newest, put_back: None })
    }
}

/// Length of one entry: the 17 digits of its time and its role's letter.
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
                assert_eq!((parsed.seq, parsed.stamp, parsed.packs), (seq, mark, mark));
                assert!(parsed.is_of_one_run_with(&head));
                let names: Vec<_> = parsed.newest().collect();
                // A prompt needs the six newest messages.
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
