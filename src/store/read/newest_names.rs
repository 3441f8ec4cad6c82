//! Finds the newest messages up to a limit by their names. Whole packs are counted by their names, and of the packs only
//! the one in which the limit is reached is read.

use jiff::Timestamp;

use crate::error::Result;
use crate::store::folder::pack::pack_lines::{PackLines, ReversePackLines};
use crate::store::folder::pack::{Line, OpenedPack, Pack};
use crate::store::folder::{Folder, Listing, Opened, unstable_folder};
use crate::store::read::record_cache::RecordCache;
use crate::store::read::reverse_scan::{NextRecord, ReverseScan};
use crate::store::read::tail::Tail;
use crate::store::read::window::Window;
use crate::store::record::finding::FindingKind;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::name::{RecordKind, RecordName};
use crate::store::record::retention::Horizon;
use crate::store::record::seq_set::SeqSet;

/// Which names count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted<'a> {
    /// The most messages that the limit shows.
    pub(crate) most: u64,
    /// Numbers up to this one have expired.
    pub(crate) expired: u64,
    /// The highest number that counts.
    pub(crate) last: u64,
    /// The numbers that are forgotten or those of forget records.
    pub(crate) without_message: &'a SeqSet,
}

impl Counted<'_> {
    /// Whether the pack's name tells how many of its messages count.
    fn is_told_by_name(&self, pack: &PackName) -> bool {
        let is_purged = !self.without_message.intersects(&pack.seqs()) || self.is_dense(pack);
        pack.lowest > self.expired && pack.highest <= self.last && is_purged
    }

    /// Whether the pack has every number of its range that any message has.
    fn is_dense(&self, pack: &PackName) -> bool {
        pack.count == pack.numbers_beside(self.without_message)
    }
}

/// The newest names up to a limit, newest first.
pub(crate) struct NewestNames {
    stretches: Vec<Stretch>,
    count: u64,
    /// Whether there are no older ones.
    is_whole: bool,
}

enum Stretch {
    Names(Vec<RecordName>),
    Pack {
        name: PackName,
        /// How many of its oldest messages are over the limit.
        over: u64,
    },
}

/// How a pack compares with its name.
enum PackEnds {
    AsNamed,
    Other,
    Gone,
}

impl PackEnds {
    /// Reads the first and the last line. A pack that the system cannot read just now counts as its name says.
    fn of(folder: &Folder, name: PackName) -> Result<Self> {
        let pack = match Pack::open(folder, name)? {
            OpenedPack::Pack(pack) => pack,
            OpenedPack::Gone => return Ok(Self::Gone),
            OpenedPack::Skipped(FindingKind::Unreadable(_)) => return Ok(Self::AsNamed),
            OpenedPack::Skipped(_) => return Ok(Self::Other),
        };
        let first = PackLines::new(&pack).next()?.and_then(|line| line.name);
        let last = ReversePackLines::new(pack).next()?.and_then(|line| line.name);
        let is_same = first == Some(name.first) && last == Some(name.last);
        Ok(if is_same { Self::AsNamed } else { Self::Other })
    }
}

impl NewestNames {
    /// Finds them among loose records that are not forgotten and packs. Opens the loose ones: what does not open is no
    /// message. `None` if a file has vanished.
    pub(crate) fn find(
        folder: &Folder,
        cache: &mut RecordCache<'_>,
        mut scan: ReverseScan,
        counted: Counted<'_>,
    ) -> Result<Option<Self>> {
        let mut found = Self { stretches: Vec::new(), count: 0, is_whole: true };
        let mut newest_known = None;
        loop {
            if let Some((pack, is_alone)) = scan.unread_pack() {
                if pack.highest <= counted.expired {
                    scan.skip();
                    continue;
                }
                if is_alone && newest_known != Some(pack.last) && counted.is_told_by_name(&pack) {
                    match PackEnds::of(folder, pack)? {
                        PackEnds::Gone => return Ok(None),
                        PackEnds::Other => {}
                        PackEnds::AsNamed => {
                            let over = pack.count.saturating_sub(counted.most - found.count);
                            if over < pack.count {
                                found.count += pack.count - over;
                                found.stretches.push(Stretch::Pack { name: pack, over });
                            }
                            if over > 0 {
                                found.is_whole = false;
                                break;
                            }
                            scan.skip();
                            continue;
                        }
                    }
                }
            }
            let next = scan.next(folder)?;
            let mut name = match next {
                NextRecord::Vanished => return Ok(None),
                NextRecord::End => break,
                NextRecord::Loose(name) | NextRecord::Packed(_, name, _) => name,
            };
            if newest_known == Some(name)
                || name.seq <= counted.expired
                || name.seq > counted.last
                || counted.without_message.contains(name.seq)
            {
                continue;
            }
            let known = newest_known.replace(name);
            if let NextRecord::Loose(_) = next {
                match cache.open(name)? {
                    Opened::Message(_) => {}
                    Opened::Gone => return Ok(None),
                    // It has its place, but nothing begins with it.
                    Opened::Skipped(FindingKind::Unreadable(_)) => name.kind = RecordKind::Tool,
                    Opened::Skipped(_) | Opened::Forget(_) => {
                        newest_known = known;
                        continue;
                    }
                }
            }
            if found.count == counted.most {
                found.is_whole = false;
                break;
            }
            found.count += 1;
            match found.stretches.last_mut() {
                Some(Stretch::Names(names)) => names.push(name),
                _ => found.stretches.push(Stretch::Names(vec![name])),
            }
        }
        Ok(Some(found))
    }

    /// Lists the folder and finds them. For the lock holder, who excludes other changes.
    pub(crate) fn list(folder: &Folder, tail: &Tail) -> Result<Self> {
        let without_message = tail.without_message();
        let Listing { mut names, packs, .. } = folder.list()?;
        names.retain(|name| !name.is_forget() && !without_message.contains(name.seq));
        let mut cache = RecordCache::new(folder, Some(tail));
        let counted = tail.counted(&without_message, u64::MAX);
        Self::find(folder, &mut cache, ReverseScan::new(names, &packs), counted)?
            .ok_or_else(|| unstable_folder(folder))
    }

    /// The names, oldest first, until the callback returns `false`. Returns `false` if a pack has vanished.
    fn each(&self, folder: &Folder, mut visit: impl FnMut(RecordName) -> bool) -> Result<bool> {
        for stretch in self.stretches.iter().rev() {
            let goes_on = match stretch {
                Stretch::Names(names) => Some(names.iter().rev().all(|name| visit(*name))),
                Stretch::Pack { name, over } => each_line(folder, *name, *over, &mut visit)?,
            };
            match goes_on {
                Some(true) => {}
                Some(false) => break,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Where the visible ones of them begin. `None` if a file has vanished.
    pub(super) fn window(&self, folder: &Folder, most: u64) -> Result<Option<Window>> {
        let newest = self.stretches.first().and_then(|stretch| match stretch {
            Stretch::Names(names) => names.first().copied(),
            Stretch::Pack { name, .. } => Some(name.last),
        });
        Window::of((most, !self.is_whole), (self.count, newest), &mut |visit| {
            self.each(folder, visit)
        })
    }

    /// The numbers of those that the horizon shows.
    pub(crate) fn shown(
        &self,
        folder: &Folder,
        horizon: Horizon,
        without_message: &SeqSet,
    ) -> Result<SeqSet> {
        let mut shown = SeqSet::default();
        for stretch in &self.stretches {
            let mut numbers = Vec::new();
            match stretch {
                Stretch::Names(names) => {
                    let names = names.iter().filter(|name| horizon.shows(**name));
                    numbers.extend(names.map(|name| name.seq));
                }
                Stretch::Pack { name, .. } => {
                    let is_dense = name.count == name.numbers_beside(without_message);
                    let mut hidden = Vec::new();
                    let read = |line: RecordName| {
                        let is_shown = horizon.shows(line);
                        if is_shown { &mut numbers } else { &mut hidden }.push(line.seq);
                        // The other lines are shown too.
                        !(is_shown && is_dense)
                    };
                    let is_all_shown = is_dense && horizon.shows(name.first);
                    if !is_all_shown && each_line(folder, *name, 0, read)?.is_none() {
                        return Err(unstable_folder(folder));
                    }
                    if is_dense {
                        let hidden = hidden.into_iter().map(|seq| seq..=seq).collect();
                        let all: SeqSet = std::iter::once(name.seqs()).collect();
                        shown.extend(all.without(&hidden).ranges());
                    }
                }
            }
            shown.extend(numbers.into_iter().map(|seq| seq..=seq));
        }
        Ok(shown)
    }
}

impl Tail {
    /// Which names count for these limits.
    pub(super) fn counted<'a>(&self, without_message: &'a SeqSet, last: u64) -> Counted<'a> {
        let (most, expired) = (self.retention.most(), self.profile.expired);
        Counted { most, expired, last, without_message }
    }

    /// [`horizon`](Self::horizon) for the lock holder: counts the names if that is necessary.
    ///
    /// # Errors
    /// What prevents reading the folder.
    pub(crate) fn horizon_alone(&mut self, folder: &Folder, now: Timestamp) -> Result<Horizon> {
        if self.horizon(|| now).is_none() {
            let names = NewestNames::list(folder, self)?;
            self.window = names.window(folder, self.retention.most())?;
        }
        self.horizon(|| now).ok_or_else(|| unstable_folder(folder))
    }

    /// The numbers that a horizon of this tail shows. Requires the lock.
    pub(crate) fn shown_seqs(&self, folder: &Folder, horizon: Horizon) -> Result<SeqSet> {
        if self.has_all_of(horizon) {
            return Ok(self.shown_from(horizon).map(|stored| stored.seq..=stored.seq).collect());
        }
        match horizon {
            Horizon::Nothing | Horizon::Expired => Ok(SeqSet::default()),
            Horizon::From { first, .. } if first > RecordName::FIRST => {
                let names = NewestNames::list(folder, self)?;
                names.shown(folder, horizon, &self.without_message())
            }
            Horizon::All | Horizon::From { .. } => {
                Ok(std::iter::once(self.profile.expired + 1..=self.last_seq).collect())
            }
        }
    }
}

/// The names of a pack's lines from a position on, oldest first. Returns whether the callback wants more; `None` if the
/// pack has vanished.
fn each_line(
    folder: &Folder,
    name: PackName,
    over: u64,
    mut visit: impl FnMut(RecordName) -> bool,
) -> Result<Option<bool>> {
    let pack = match Pack::open(folder, name)? {
        OpenedPack::Pack(pack) => pack,
        OpenedPack::Gone => return Ok(None),
        OpenedPack::Skipped(_) => return Ok(Some(true)),
    };
    let (mut lines, mut line, mut at) = (PackLines::new(&pack), Line::default(), 0);
    while lines.next_into(&mut line)? {
        let Some(record) = line.name.filter(|record| name.covers(*record)) else { continue };
        at += 1;
        if at > over && !visit(record) {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;
    use crate::directory::Directory;
    use crate::directory::memory::MemoryDirectory;
    use crate::store::record::name::NameTime;
    use crate::store::record::retention::{Retention, start};
    use crate::store::{ConversationStore, FileConversationStore, StoreOptions};
    use crate::{ChatMessage, ChatRole, EncryptionKey};

    const ROLES: [ChatRole; 4] =
        [ChatRole::User, ChatRole::Assistant, ChatRole::Tool, ChatRole::System];

    async fn open(loose: usize) -> FileConversationStore {
        let root: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
        let key = EncryptionKey::from_secret("a secret of the tests, long enough").unwrap();
        let options = StoreOptions::new(key).loose_files(loose);
        options.open_directory(Arc::clone(&root), root).await.unwrap()
    }

    /// Names in order, with these roles.
    fn named(roles: &[usize]) -> Vec<RecordName> {
        let name = |(at, role): (usize, &usize)| RecordName {
            time: NameTime::MIN,
            seq: at as u64 + 1,
            kind: ROLES[*role].into(),
        };
        roles.iter().enumerate().map(name).collect()
    }

    /// Where a limit begins by definition.
    fn defined(names: &[RecordName], roles: &[usize], most: u64) -> Horizon {
        if names.len() as u64 <= most {
            return Horizon::All;
        }
        let said =
            roles.iter().map(|role| ChatMessage::at(ROLES[*role], "", Timestamp::UNIX_EPOCH));
        let said: Vec<_> = said.take(names.len()).collect();
        names.get(start(said.iter(), most)).map_or(Horizon::Nothing, |first| Horizon::from(*first))
    }

    proptest! {
        #[test]
        fn a_window_that_moves_on_begins_where_the_limit_does(
            roles in prop::collection::vec(prop_oneof![8 => 1usize..3, 2 => 0usize..4], 1..60),
            most in 1u64..30,
            known in 0usize..60,
        ) {
            let names = named(&roles);
            let known = known.min(names.len());
            let store = blocking(open(64));
            let folder = &store.reader().folder;
            let newest = names[..known].iter().rev().take(most as usize).copied();
            let found = NewestNames {
                stretches: vec![Stretch::Names(newest.collect())],
                count: most.min(known as u64),
                is_whole: known as u64 <= most,
            };
            let mut window = found.window(folder, most).unwrap().unwrap();
            prop_assert_eq!(window.horizon(), defined(&names[..known], &roles, most));
            for at in known..names.len() {
                prop_assert!(window.add(names[at]));
                let expected = defined(&names[..=at], &roles, most);
                prop_assert_eq!(window.horizon(), expected, "{:?}", &roles[..=at]);
                let shown = names[..=at].iter().filter(|name| expected.shows(**name)).count();
                prop_assert_eq!(window.count, shown as u64);
            }
        }
    }

    fn blocking<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    #[tokio::test]
    async fn names_tell_what_all_messages_tell() {
        let mut random = 11_u64;
        let mut next = move |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut time: Timestamp = "2025-08-24T16:00:00Z".parse().unwrap();
        let mut by_names = 0;
        for round in 0..6 {
            let store = open(1 + 4 * (round % 2)).await;
            for step in 0..40 {
                time += SignedDuration::from_secs(1 + i64::try_from(next(60)).unwrap());
                let many: Vec<_> = (0..1 + next(30))
                    .map(|_| {
                        let role = ROLES[usize::try_from(next(4)).unwrap()];
                        ChatMessage::at(role, format!("{round}.{step}"), time)
                    })
                    .collect();
                match next(8) {
                    0..=4 => drop(store.append_all(many).await.unwrap()),
                    5 => {
                        let back = SignedDuration::from_secs(i64::try_from(next(900)).unwrap());
                        let back = many.into_iter().map(|mut message| {
                            message.timestamp -= back;
                            message
                        });
                        drop(store.import(back.collect()).await.unwrap());
                    }
                    6 => {
                        let first = 1 + next(store.read_tail(1).await.unwrap().last_seq.max(1));
                        drop(store.forget(&[first..=first + next(9)]).await.unwrap());
                    }
                    _ => drop(store.pack(|_| {}).await.unwrap()),
                }
                let folder = &store.reader().folder;
                let all = Tail::load(folder, usize::MAX, None).unwrap();
                let expired = if next(3) == 0 { next(all.last_seq.max(1)) } else { 0 };
                for most in [1, 2, 3, 5, 17, 40, 150, 400] {
                    let limits = Retention::FOREVER.max_messages(most);
                    let mut by_memory = all.clone();
                    by_memory.retention = limits;
                    let mut profile = crate::store::Profile::clone(&all.profile);
                    profile.expired = expired;
                    by_memory.profile = Arc::new(profile);
                    by_memory.messages.retain(|stored| stored.seq > expired);
                    let mut few = by_memory.clone();
                    few.messages.drain(..few.messages.len().saturating_sub(1));
                    few.whole = few.messages.is_empty();
                    let expected = by_memory.horizon(|| time).unwrap();
                    let what = format!("round {round} step {step} most {most} after {expired}");
                    assert_eq!(few.horizon_alone(folder, time).unwrap(), expected, "{what}");
                    let numbers = few.shown_seqs(folder, expected).unwrap();
                    let numbers = numbers.without(&few.without_message());
                    let known = by_memory.shown_seqs(folder, expected).unwrap();
                    assert_eq!(numbers, known, "{what}");
                    assert_eq!(few.shown_count(expected), known.count(), "{what}");
                    by_names += usize::from(few.window.is_some());
                }
            }
        }
        assert!(by_names > 300, "{by_names}");
    }
}
