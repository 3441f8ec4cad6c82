//! Packing with interruptions: it must never change any message.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::admin::RepairOptions;
use crate::clock::ManualClock;
use crate::directory::{Directory, Streamed, memory::MemoryDirectory};
use crate::store::record::name::pack_name::PackName;
use crate::store::tests::failing_storage::{
    Call, FaultyDirectory, broken, no_space, not_durable, said,
};
use crate::store::{ConversationStore, FileConversationStore, FindingKind, StoreOptions};
use crate::{EncryptionKey, Error};

async fn open(directory: &Arc<impl Directory + 'static>, loose: usize) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the packing tests").unwrap();
    let clock = ManualClock::at_utc("2025-08-24T17:00:00Z".parse().unwrap());
    let options = StoreOptions::new(key).loose_files(loose).clock(Arc::new(clock));
    let directory: Arc<dyn Directory> = directory.clone();
    options.open_directory(directory.clone(), directory).await.unwrap()
}

fn names(directory: &dyn Directory) -> Vec<String> {
    let mut names = Vec::new();
    directory.list(&mut |name, _| names.push(String::from_utf8(name.into()).unwrap())).unwrap();
    names
}

fn loose(directory: &dyn Directory) -> Vec<String> {
    names(directory).into_iter().filter(|name| name.ends_with(".json")).collect()
}

fn packs(directory: &dyn Directory) -> Vec<PackName> {
    names(&*directory.folder("packs")).iter().map(|name| name.parse().unwrap()).collect()
}

async fn appended(store: &FileConversationStore, numbers: RangeInclusive<u64>) {
    for number in numbers {
        assert_eq!(store.append_message(said(number)).await.unwrap().seq, number);
    }
}

/// The stored numbers. Checks that each message has its own text.
async fn seqs(store: &FileConversationStore) -> Vec<u64> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    let ranged = store.read_seqs(0..=u64::MAX).await.unwrap();
    assert_eq!(reading.messages, ranged.messages);
    for stored in &reading.messages {
        assert_eq!(stored.message.content, stored.seq.to_string());
    }
    reading.messages.iter().map(|stored| stored.seq).collect()
}

async fn findings(store: &FileConversationStore) -> Vec<FindingKind> {
    let report = store.verify(|_| {}).await.unwrap();
    report.findings.into_iter().map(|finding| finding.kind).collect()
}

#[tokio::test]
async fn a_long_conversation_lies_in_a_few_files_and_reads_the_same() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 4).await;
    appended(&store, 1..=1_500).await;
    assert!(loose(&*directory).len() <= 9, "{:?}", loose(&*directory));
    let packs = packs(&*directory);
    assert!(packs.len() < 22, "{}", packs.len());
    let packed: u64 = packs.iter().map(|pack| pack.count).sum();
    assert_eq!(packed as usize + loose(&*directory).len(), 1_500);
    for store in [&store, &open(&directory, 4).await] {
        assert_eq!(seqs(store).await, (1..=1_500).collect::<Vec<_>>());
        assert!(findings(store).await.is_empty());
        for n in [1, 5, 9, 10, 60, 700] {
            let reading = store.read_tail(n).await.unwrap();
            assert!(reading.messages.iter().map(|m| m.seq).eq(1_501 - n as u64..=1_500));
        }
    }
}

/// The cost of a tail, in calls and listed names: after opening, after another process's append, and unchanged.
async fn cost_of_tails(messages: u64) -> [(usize, usize); 3] {
    let directory = Arc::new(MemoryDirectory::default());
    let writer = open(&directory, 64).await;
    for batch in 0..messages / 500 {
        let said = (1..=500).map(|number| said(batch * 500 + number)).collect();
        writer.append_all(said).await.unwrap();
    }
    for number in 1..=128 {
        writer.append_message(said(messages + number)).await.unwrap();
    }
    let counting = FaultyDirectory::over(directory.clone());
    let mut before = (0, 0);
    let mut costs = [(0, 0); 3];
    let store = open(&counting, 64).await;
    for (at, cost) in costs.iter_mut().enumerate() {
        if at == 1 {
            writer.append_message(said(messages + 129)).await.unwrap();
        }
        assert_eq!(store.read_tail(6).await.unwrap().messages.len(), 6);
        let after = counting.counted();
        *cost = (after.0 - before.0, after.1 - before.1);
        before = after;
    }
    costs
}

#[tokio::test]
async fn a_tail_costs_the_same_after_many_messages_as_after_few() {
    let (few, many) = (cost_of_tails(500).await, cost_of_tails(20_000).await);
    for (few, many) in few.into_iter().zip(many) {
        assert_eq!(few.0, many.0, "calls");
        assert!(many.1 <= few.1 + 80, "{} names listed instead of {}", many.1, few.1);
    }
    assert!(many[2].0 <= 2 && many[2].1 == 0, "{:?}", many[2]);
}

#[tokio::test]
async fn the_head_is_durable_before_a_pack_is_published() {
    let directory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(directory.clone());
    let store = open(&faulty, 2).await;
    faulty.fail(Call::Flush, 0, 1, broken);
    appended(&store, 1..=6).await;
    assert!(faulty.is_spent());
    assert!(
        packs(&*directory).is_empty(),
        "a pack was published though the head could not be flushed"
    );
    appended(&store, 7..=12).await;
    assert!(!packs(&*directory).is_empty(), "it is tried again later");
}

#[tokio::test]
async fn packing_that_fails_fails_no_append_and_is_made_up_for_later() {
    for (call, error) in [
        (Call::Stream, no_space as fn(&std::path::Path) -> Error),
        (Call::Stream, broken),
        (Call::Stream, not_durable),
        (Call::Remove, broken),
        (Call::Flush, no_space),
    ] {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty, 2).await;
        appended(&store, 1..=2).await;
        faulty.fail(call, 0, usize::MAX, error);
        appended(&store, 3..=30).await;
        assert_eq!(seqs(&store).await, (1..=30).collect::<Vec<_>>(), "{call:?}");
        assert_eq!(loose(&*directory).len(), 30, "{call:?}");
        faulty.fail(call, 0, 0, error);
        appended(&open(&faulty, 2).await, 31..=36).await;
        assert!(loose(&*directory).len() <= 5, "{call:?}: {:?}", loose(&*directory));
        let other = open(&directory, 2).await;
        assert_eq!(seqs(&other).await, (1..=36).collect::<Vec<_>>(), "{call:?}");
        assert!(findings(&other).await.is_empty(), "{call:?}: {:?}", findings(&other).await);
    }
}

#[tokio::test]
async fn packing_broken_off_at_any_step_loses_and_doubles_nothing() {
    for before in [2, 16] {
        let mut steps = 0;
        for step in 0.. {
            let directory = Arc::new(MemoryDirectory::default());
            let faulty = FaultyDirectory::over(directory.clone());
            let store = open(&faulty, 1).await;
            appended(&store, 1..=before).await;
            // From here on nothing reaches the disk, as after a kill.
            faulty.fail(Call::Any, step, usize::MAX, broken);
            let told = store.append_message(said(before + 1)).await.is_ok();
            let next = open(&directory, 1).await;
            let there = seqs(&next).await;
            let last = there.len() as u64;
            assert!(there.iter().copied().eq(1..=last), "step {step}: {there:?}");
            assert!(last == before + 1 || last == before && !told, "step {step}: {there:?}");
            let found = findings(&next).await;
            let harmless = |kind: &FindingKind| *kind == FindingKind::RedundantCopy;
            assert!(found.iter().all(harmless), "step {step}: {found:?}");
            appended(&next, last + 1..=last + 1).await;
            assert_eq!(seqs(&next).await.len() as u64, last + 1);
            let found = findings(&next).await;
            assert!(found.is_empty(), "step {step}: {found:?}");
            appended(&next, last + 2..=last + 40).await;
            assert_eq!(seqs(&open(&directory, 1).await).await.len() as u64, last + 40);
            let files = packs(&*directory).len() + loose(&*directory).len();
            assert!(files < 24, "step {step}: {files} files");
            if told && !faulty.was_reached() {
                break;
            }
            steps += 1;
        }
        assert!(steps > 10, "only {steps} steps");
    }
}

#[tokio::test]
async fn forgetting_what_is_packed_takes_its_bytes_off_the_disk_at_whatever_step_it_breaks_off() {
    for step in 0.. {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty, 1).await;
        appended(&store, 1..=20).await;
        let line = line_of(&*directory, 5).1;
        faulty.fail(Call::Any, step, usize::MAX, broken);
        let told = store.forget(&[4..=6, 19..=19]).await;
        let next = open(&directory, 1).await;
        let there = seqs(&next).await;
        let forgot = there.len() == 16;
        assert!(forgot || there.len() == 20 && told.is_err(), "step {step}: {there:?}");
        if let Ok(forgotten) = &told {
            assert_eq!(forgotten.removed, [4, 5, 6, 19]);
        }
        let last = if forgot { 21 } else { 20 };
        appended(&next, last + 1..=last + 1).await;
        assert_eq!(all_bytes(&*directory).windows(line.len()).any(|w| w == line), !forgot);
        assert!(findings(&next).await.is_empty(), "step {step}: {:?}", findings(&next).await);
        if told.is_ok() && !faulty.was_reached() {
            assert!(step > 10);
            return;
        }
    }
}

/// The pack of a packed record, and the record's bytes without the line end.
fn line_of(directory: &dyn Directory, seq: u64) -> (PackName, Vec<u8>) {
    for pack in packs(directory) {
        let bytes = directory.folder("packs").read(&pack.to_string()).unwrap().unwrap();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = str::from_utf8(line).unwrap();
            if text.split('_').nth(1).unwrap().parse::<u64>().unwrap() == seq {
                return (pack, line.to_vec());
            }
        }
    }
    panic!("number {seq} is in no pack");
}

fn all_bytes(directory: &dyn Directory) -> Vec<u8> {
    let packs = directory.folder("packs");
    let mut bytes = Vec::new();
    for folder in [directory, &*packs] {
        for name in names(folder) {
            bytes.extend(folder.read(&name).unwrap().unwrap_or_default());
        }
    }
    bytes
}

/// Writes a packed record back into a file of its own, as a backup might.
fn unpack(directory: &dyn Directory, seq: u64) -> String {
    let line = String::from_utf8(line_of(directory, seq).1).unwrap();
    let (name, envelope) = line.split_once('\t').unwrap();
    assert!(directory.create(name, format!("{envelope}\n").as_bytes()).unwrap());
    name.to_owned()
}

#[tokio::test]
async fn a_reader_that_another_process_packs_under_misses_nothing_wherever_it_is() {
    // After four calls, some records move into a new pack. After sixteen, all packs are merged meanwhile.
    for (call, before, more) in [Call::List, Call::Read, Call::ReadCached]
        .into_iter()
        .flat_map(|call| [(call, 4, 1), (call, 4, 4), (call, 16, 1), (call, 16, 16)])
    {
        for after in 0.. {
            let directory = Arc::new(MemoryDirectory::default());
            let faulty = FaultyDirectory::over(directory.clone());
            appended(&open(&directory, 1).await, 1..=before).await;
            let reader = open(&faulty, 1).await;
            faulty.interfere(call, after, move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    appended(&open(&directory, 1).await, before + 1..=before + more).await
                });
            });
            for reading in [
                reader.read_tail(usize::MAX).await.unwrap(),
                reader.read_seqs(0..=u64::MAX).await.unwrap(),
                reader.read_times(jiff::Timestamp::MIN..jiff::Timestamp::MAX).await.unwrap(),
            ] {
                let context = format!("{more} more before {call:?} number {after}");
                assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
                let there: Vec<u64> = reading.messages.iter().map(|stored| stored.seq).collect();
                assert!(there.len() as u64 >= before, "{context}: {there:?}");
                assert!(there.iter().copied().eq(1..=there.len() as u64), "{context}: {there:?}");
            }
            if !faulty.has_interfered() {
                assert!(after > 2, "{call:?}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_record_in_a_pack_and_beside_it_counts_once_and_then_stays_in_the_pack() {
    let directory = Arc::new(MemoryDirectory::default());
    appended(&open(&directory, 2).await, 1..=20).await;
    let name = unpack(&*directory, 3);
    let store = open(&directory, 2).await;
    assert_eq!(seqs(&store).await, (1..=20).collect::<Vec<_>>());
    assert_eq!(findings(&store).await, [FindingKind::RedundantCopy]);
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
    appended(&store, 21..=21).await;
    assert_eq!(directory.read(&name).unwrap(), None);
    assert!(findings(&store).await.is_empty());
}

#[tokio::test]
async fn of_a_damaged_copy_and_a_sound_one_the_sound_one_is_read_and_both_stay() {
    for damage_pack in [false, true] {
        let directory = Arc::new(MemoryDirectory::default());
        appended(&open(&directory, 2).await, 1..=20).await;
        let name = unpack(&*directory, 3);
        let (pack, line) = line_of(&*directory, 3);
        if damage_pack {
            let packs = directory.folder("packs");
            let text = String::from_utf8(packs.read(&pack.to_string()).unwrap().unwrap()).unwrap();
            let line = String::from_utf8(line).unwrap();
            let damaged = text.replace(&line, &line.replace("\"tag\":\"", "\"tag\":\"AAAA"));
            assert_ne!(damaged, text);
            packs.replace(&pack.to_string(), damaged.as_bytes()).unwrap();
        } else {
            let text = String::from_utf8(directory.read(&name).unwrap().unwrap()).unwrap();
            directory.replace(&name, text.replace("\"v\":1", "\"v\":0").as_bytes()).unwrap();
        }
        let store = open(&directory, 2).await;
        for _ in 0..2 {
            for reading in
                [store.read_tail(99).await.unwrap(), store.read_seqs(0..=99).await.unwrap()]
            {
                let numbers: BTreeSet<_> = reading.messages.iter().map(|m| m.seq).collect();
                assert!(numbers.into_iter().take(20).eq(1..=20));
            }
            store.append_message(said("more")).await.unwrap();
            // The damaged record stays where it was. The sound one may have moved.
            assert!(damage_pack || directory.read(&name).unwrap().is_some());
            assert!(packs(&*directory).contains(&pack));
        }
    }
}

#[tokio::test]
async fn an_old_pack_that_a_backup_brings_back_returns_nothing_forgotten_and_goes_again() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 2).await;
    appended(&store, 1..=20).await;
    let (old, line) = line_of(&*directory, 3);
    let folder = directory.folder("packs");
    let bytes = folder.read(&old.to_string()).unwrap().unwrap();
    store.forget(&[3..=3]).await.unwrap();
    assert_eq!(folder.read(&old.to_string()).unwrap(), None);
    folder.create(&old.to_string(), &bytes).unwrap();
    let reopened = open(&directory, 2).await;
    let expected: Vec<u64> = (1..=20).filter(|seq| *seq != 3).collect();
    assert_eq!(seqs(&reopened).await, expected);
    let found = findings(&reopened).await;
    assert!(found.contains(&FindingKind::Resurrected), "{found:?}");
    for store in [&reopened, &open(&directory, 2).await] {
        let next = store.read_tail(1).await.unwrap().last_seq + 1;
        appended(store, next..=next).await;
        assert!(!all_bytes(&*directory).windows(line.len()).any(|window| window == line));
    }
}

#[tokio::test]
async fn a_lost_head_takes_the_next_number_from_packs_that_open_and_not_from_names() {
    let directory = Arc::new(MemoryDirectory::default());
    appended(&open(&directory, 2).await, 1..=20).await;
    let folder = directory.folder("packs");
    let pack = packs(&*directory)[0];
    let lying = PackName { highest: 999_999, ..pack };
    let bytes = folder.read(&pack.to_string()).unwrap().unwrap();
    folder.create(&lying.to_string(), &bytes).unwrap();
    directory.remove("head").unwrap();
    loose(&*directory).iter().for_each(|name| directory.remove(name).unwrap());
    let store = open(&directory, 2).await;
    let last = packs(&*directory).iter().filter(|p| **p != lying).map(|p| p.highest).max().unwrap();
    let reading = store.read_tail(99).await.unwrap();
    assert_eq!(reading.last_seq, last);
    assert!(reading.messages.iter().map(|m| m.seq).eq(1..=last));
    store.repair(RepairOptions::default(), |_| {}).await.unwrap();
    assert_eq!(store.append_message(said("next")).await.unwrap().seq, last + 1);
}

#[tokio::test]
async fn records_taken_away_from_the_end_are_missed_even_when_all_else_is_packed() {
    let directory = Arc::new(MemoryDirectory::default());
    appended(&open(&directory, 2).await, 1..=20).await;
    loose(&*directory).iter().for_each(|name| directory.remove(name).unwrap());
    let last = packs(&*directory).iter().map(|pack| pack.highest).max().unwrap();
    let store = open(&directory, 2).await;
    let reading = store.read_tail(3).await.unwrap();
    assert_eq!(reading.skipped, [FindingKind::TailTruncated.at(last + 1, 20)]);
    assert_eq!(reading.messages.last().unwrap().seq, last);
    assert_eq!(findings(&store).await, [FindingKind::TailTruncated]);
    assert_eq!(store.append_message(said(21)).await.unwrap().seq, 21);
}

/// Writes a pack with these lines under the name that it would have if they were in order.
fn plant(directory: &dyn Directory, lines: &[&[u8]]) -> PackName {
    let mut name = None;
    let mut bytes = Vec::new();
    for line in lines {
        let text = str::from_utf8(line).unwrap();
        PackName::add(&mut name, text.split('\t').next().unwrap().parse().unwrap());
        bytes.extend_from_slice(line.trim_ascii_end());
        bytes.push(b'\n');
    }
    let name: PackName = name.unwrap();
    assert!(directory.folder("packs").create(&name.to_string(), &bytes).unwrap());
    name
}

/// A loose record as a line of a pack.
fn as_line(directory: &dyn Directory, seq: u64) -> Vec<u8> {
    let name = loose(directory).into_iter().find(|n| n.contains(&format!("_{seq:04}_"))).unwrap();
    [name.as_bytes(), b"\t", &directory.read(&name).unwrap().unwrap()].concat()
}

#[tokio::test]
async fn no_loose_record_goes_because_a_planted_pack_holds_it_where_a_tail_does_not_look() {
    let directory = Arc::new(MemoryDirectory::default());
    appended(&open(&directory, 2).await, 1..=4).await;
    let lines = [as_line(&*directory, 3), as_line(&*directory, 2)];
    plant(&*directory, &[&lines[0], &lines[1]]);
    let store = open(&directory, 2).await;
    store.append_message(said(5)).await.unwrap();
    for store in [&store, &open(&directory, 2).await] {
        let reading = store.read_tail(9).await.unwrap();
        assert!(reading.messages.iter().map(|m| m.seq).eq(1..=5), "{:?}", reading.messages);
    }
}

#[tokio::test]
async fn long_messages_do_not_pile_up_in_files_of_their_own() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 64).await;
    let long = "x".repeat(1_000_000);
    for _ in 0..9 {
        store.append_message(said(&long)).await.unwrap();
    }
    // Together they exceed what one packing takes.
    let store = open(&directory, 1).await;
    for more in 0..3 {
        store.append_message(said(more)).await.unwrap();
    }
    assert!(loose(&*directory).len() <= 2, "{} loose files", loose(&*directory).len());
}

#[tokio::test]
async fn a_pack_of_rubbish_is_reported_without_filling_the_memory() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 2).await;
    appended(&store, 1..=4).await;
    let lines: Vec<_> = (0..5_000u64)
        .map(|n| format!("20250824T163625123Z_{:04}_user.json\t{{}}\n", n + 5).into_bytes())
        .collect();
    plant(&*directory, &lines.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let store = open(&directory, 2).await;
    for reading in [store.read_tail(3).await.unwrap(), store.read_seqs(0..=u64::MAX).await.unwrap()]
    {
        assert!(
            reading.messages.iter().map(|m| m.seq).eq((1..=4).skip(4 - reading.messages.len()))
        );
        assert!((1..20).contains(&reading.skipped.len()), "{} findings", reading.skipped.len());
    }
}

/// The line count of a pack with gaps in its numbers does not reveal a record that came back into it.
#[tokio::test]
async fn a_pack_with_holes_that_a_backup_brings_back_is_rid_of_what_was_forgotten() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 64).await;
    appended(&store, 1..=9).await;
    let lines = [1, 2, 3, 7].map(|seq| as_line(&*directory, seq));
    for seq in [1, 2, 3, 7] {
        let name = loose(&*directory).into_iter().find(|n| n.contains(&format!("_{seq:04}_")));
        directory.remove(&name.unwrap()).unwrap();
    }
    let old = plant(&*directory, &lines.each_ref().map(Vec::as_slice));
    let folder = directory.folder("packs");
    let bytes = folder.read(&old.to_string()).unwrap().unwrap();
    let store = open(&directory, 64).await;
    assert_eq!(store.forget(&[2..=2]).await.unwrap().removed, [2]);
    assert!(folder.create(&old.to_string(), &bytes).unwrap());
    let store = open(&directory, 64).await;
    store.append_message(said(11)).await.unwrap();
    let line = lines[1].trim_ascii_end();
    assert!(!all_bytes(&*directory).windows(line.len()).any(|window| window == line));
    assert_eq!(seqs(&open(&directory, 64).await).await, [1, 3, 4, 5, 6, 7, 8, 9, 11]);
    assert!(findings(&store).await.is_empty());
}

#[tokio::test]
async fn a_file_in_the_way_of_one_purged_pack_does_not_prevent_purging_others() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 1).await;
    appended(&store, 1..=20).await;
    let kept = [3, 18].map(|seq| line_of(&*directory, seq));
    assert_ne!(kept[0].0, kept[1].0);
    let without = PackName { count: kept[0].0.count - 1, ..kept[0].0 };
    assert!(directory.folder("packs").create(&without.to_string(), b"rubbish\n").unwrap());
    let forgotten = store.forget(&[3..=3, 18..=18]).await.unwrap();
    assert_eq!(forgotten.removed, [18]);
    assert_eq!(forgotten.left.len(), 1, "{:?}", forgotten.left);
}

#[tokio::test]
async fn forgotten_words_that_could_not_be_taken_out_of_a_pack_go_when_that_is_possible_again() {
    for forgets_again in [true, false] {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty, 1).await;
        appended(&store, 1..=20).await;
        let line = line_of(&*directory, 5).1;
        let is_there = || all_bytes(&*directory).windows(line.len()).any(|window| window == line);
        faulty.fail(Call::Stream, 0, usize::MAX, no_space);
        for _ in 0..2 {
            let left = store.forget(&[5..=5]).await.unwrap().left;
            assert!(!left.is_empty(), "it is not forgotten while its bytes are there");
        }
        store.append_message(said("while there is no space for a pack")).await.unwrap();
        assert!(is_there());
        faulty.fail(Call::Stream, 0, 0, no_space);
        match forgets_again {
            true => drop(store.forget(&[5..=5]).await.unwrap()),
            false => drop(store.append_message(said("with space")).await.unwrap()),
        }
        assert!(!is_there(), "{forgets_again}");
    }
}

#[tokio::test]
async fn packing_on_request_moves_all_beyond_the_newest_and_can_be_broken_off_at_any_step() {
    for step in 0.. {
        let directory = Arc::new(MemoryDirectory::default());
        // Another program left these files loose.
        let lax = open(&directory, 4_000).await;
        appended(&lax, 1..=30).await;
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty, 3).await;
        faulty.fail(Call::Any, step, usize::MAX, broken);
        let told = store.pack(|_| {}).await;
        let next = open(&directory, 3).await;
        assert_eq!(seqs(&next).await, (1..=30).collect::<Vec<_>>(), "step {step}");
        appended(&next, 31..=31).await;
        assert!(findings(&next).await.is_empty(), "step {step}: {:?}", findings(&next).await);
        if faulty.was_reached() {
            continue;
        }
        let packed = told.unwrap();
        assert_eq!((packed.moved, packed.packs_before, packed.packs_after), (27, 0, 1));
        assert_eq!(loose(&*directory).len(), 4);
        let again = next.pack(|_| {}).await.unwrap();
        assert_eq!((again.moved, again.packs_before, again.packs_after), (1, 1, 2));
        assert!(again.bytes > packed.bytes);
        return;
    }
}

#[test]
fn names_of_packs_come_back_and_impossible_ones_are_foreign() {
    let a = "20250824T163625123Z_0001_user";
    let b = "20250824T163625123Z_0009_assistant";
    for text in [format!("{a}.{b}.1-9.9.pack"), format!("{a}.{a}.1-1.1.pack")] {
        assert_eq!(text.parse::<PackName>().unwrap().to_string(), text);
    }
    for text in [
        String::new(),
        format!("{b}.{a}.1-9.9.pack"),
        format!("{a}.{b}.1-9.0.pack"),
        format!("{a}.{b}.2-9.9.pack"),
        format!("{a}.{b}.1-8.9.pack"),
        format!("{a}.{b}.01-9.9.pack"),
        format!("{a}.{b}.1-9.9"),
        format!("{a}.{b}.1-9.+9.pack"),
        format!("{a}.json.{b}.json.1-9.9.pack"),
        format!("{a}.{}.1-9.9.pack", b.replace("assistant", "forget")),
        format!("{a}.{b}.1-9.9.9.pack"),
    ] {
        assert!(text.parse::<PackName>().is_err(), "{text}");
    }
}

#[test]
fn what_is_streamed_is_published_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = crate::directory::fs::FsDirectory::new(folder.path(), &[]).unwrap();
    for directory in [&MemoryDirectory::default() as &dyn Directory, &on_disk] {
        let packs = directory.folder("packs");
        assert!(names(&*packs).is_empty());
        assert!(packs.open("a").unwrap().is_none());
        let fill = |name: Option<&str>| {
            packs
                .stream(&mut |sink| {
                    sink(b"one ")?;
                    sink(b"two")?;
                    Ok(name.map(str::to_owned))
                })
                .unwrap()
        };
        assert_eq!(fill(None), Streamed::Abandoned);
        assert!(names(&*packs).is_empty());
        assert_eq!(fill(Some("a")), Streamed::Published("a".into()));
        assert_eq!(fill(Some("a")), Streamed::Taken("a".into()));
        assert_eq!(names(&*packs), ["a"]);
        assert!(packs.stream(&mut |_| Err(Error::NoRandomness)).is_err());
        let source = packs.open("a").unwrap().unwrap();
        packs.flush("a").unwrap();
        packs.remove("a").unwrap();
        assert!(names(&*packs).is_empty());
        // A reader that has it open can still read it.
        let mut bytes = [0; 9];
        assert_eq!((source.size(), source.read_at(4, &mut bytes).unwrap()), (7, 3));
        assert_eq!(&bytes[..3], b"two");
        assert_eq!(source.read_at(9, &mut bytes).unwrap(), 0);
    }
}
