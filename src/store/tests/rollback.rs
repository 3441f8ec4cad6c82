//! Rollbacks: files that were replaced by older versions, as far as a read can notice.

use crate::EncryptionKey;
use std::sync::Arc;

use crate::Scope;
use crate::admin::RepairOptions;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::ReadResult;
use crate::store::tests::failing_storage::said;
use crate::store::{ConversationStore, FileConversationStore, FindingKind, StoreOptions};

async fn open(directory: &Arc<MemoryDirectory>) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the tests of rollbacks").unwrap();
    let directory: Arc<dyn Directory> = directory.clone();
    StoreOptions::new(key).open_directory(directory.clone(), directory).await.unwrap()
}

fn bytes(directory: &MemoryDirectory, name: &str) -> Vec<u8> {
    directory.read(name).unwrap().unwrap()
}

fn name(directory: &MemoryDirectory, part: &str) -> String {
    let mut found = None;
    directory
        .list(&mut |name, _| {
            let name = String::from_utf8(name.into()).unwrap();
            if name.contains(part) {
                found = Some(name);
            }
        })
        .unwrap();
    found.unwrap()
}

async fn appended(store: &FileConversationStore, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        assert_eq!(store.append_message(said(number)).await.unwrap().seq, number);
    }
}

fn found(reading: &ReadResult) -> Vec<(&'static str, Option<(u64, u64)>)> {
    reading.skipped.iter().map(|finding| (finding.kind.code(), finding.seqs)).collect()
}

#[tokio::test]
async fn a_forget_record_removed_with_its_message_restored_is_reported_by_every_read() {
    for later in [false, true] {
        let directory = Arc::new(MemoryDirectory::default());
        let store = open(&directory).await;
        appended(&store, 1..=5).await;
        store.forget(&[2..=2]).await.unwrap();
        let first = name(&directory, "_forget");
        let first_bytes = bytes(&directory, &first);
        let three = name(&directory, "_0003_");
        let words = bytes(&directory, &three);
        store.forget(&[3..=3]).await.unwrap();
        appended(&store, 8..=9).await;
        assert!(open(&directory).await.read_tail(9).await.unwrap().skipped.is_empty());

        directory.remove(&name(&directory, "_0007_forget")).unwrap();
        directory.create(&three, &words).unwrap();
        directory.create(&first, &first_bytes).unwrap();
        if later {
            // A writer continues, and the head keeps the finding.
            appended(&open(&directory).await, 10..=11).await;
        }
        let expected = [("forget-missing", Some((7, 7)))];
        for n in [1, 9] {
            let store = open(&directory).await;
            assert_eq!(found(&store.read_tail(n).await.unwrap()), expected);
            assert_eq!(found(&store.read_tail(n).await.unwrap()), expected);
        }
        let report = open(&directory).await.verify(|_| {}).await.unwrap();
        let kinds: Vec<_> = report.findings.iter().map(|found| found.kind.clone()).collect();
        assert_eq!(kinds, [FindingKind::ForgetMissing]);
        // Forgetting it once more restores the state.
        let store = open(&directory).await;
        store.forget(&[3..=3, 7..=7]).await.unwrap();
        assert!(open(&directory).await.read_tail(9).await.unwrap().skipped.is_empty());
        assert!(open(&directory).await.verify(|_| {}).await.unwrap().findings.is_empty());
    }
}

#[tokio::test]
async fn a_head_put_back_with_the_newest_records_gone_contradicts_the_settings() {
    for had_settings in [false, true] {
        let directory = Arc::new(MemoryDirectory::default());
        let store = open(&directory).await;
        appended(&store, 1..=3).await;
        let title = |title: &'static str| -> crate::store::ProfileChange {
            Box::new(move |profile| profile.title = Some(title.to_owned()))
        };
        if had_settings {
            store.change_profile(title("before")).await.unwrap();
        }
        let head = bytes(&directory, "head");
        appended(&store, 4..=5).await;
        store.change_profile(title("after")).await.unwrap();
        directory.remove(&name(&directory, "_0004_")).unwrap();
        directory.remove(&name(&directory, "_0005_")).unwrap();
        directory.overwrite("head", &head).unwrap();

        for n in [1, 3, 9] {
            let reading = open(&directory).await.read_tail(n).await.unwrap();
            assert_eq!(found(&reading), [("tail-truncated", Some((4, 5)))]);
            assert_eq!(reading.last_seq, 5);
        }
        let report = open(&directory).await.verify(|_| {}).await.unwrap();
        assert!(report.findings.iter().any(|found| found.kind == FindingKind::TailTruncated));
        // No number is given twice.
        appended(&open(&directory).await, 6..=6).await;
        let report = open(&directory).await.verify(|_| {}).await.unwrap();
        let missing: Vec<_> = report.findings.iter().map(|found| found.seqs).collect();
        assert_eq!(missing, [Some((4, 5))]);
    }
}

#[tokio::test]
async fn whoever_was_reading_meanwhile_tells_of_a_head_put_back() {
    let directory = Arc::new(MemoryDirectory::default());
    let (writer, reader) = (open(&directory).await, open(&directory).await);
    appended(&writer, 1..=3).await;
    let head = bytes(&directory, "head");
    appended(&writer, 4..=4).await;
    assert_eq!(reader.read_tail(9).await.unwrap().last_seq, 4);
    directory.remove(&name(&directory, "_0004_")).unwrap();
    directory.overwrite("head", &head).unwrap();
    let reading = reader.read_tail(9).await.unwrap();
    assert_eq!(found(&reading), [("tail-truncated", Some((4, 4)))]);
    // The next message tells other readers.
    appended(&reader, 5..=5).await;
    assert!(!open(&directory).await.verify(|_| {}).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_snapshot_of_what_is_forgotten_while_it_is_saved_is_not_kept_empty() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    appended(&store, 1..=3).await;
    let saved = |seqs: &[u64]| {
        let saved =
            seqs.iter().map(|seq| crate::store::SavedMessage::new(*seq, said(*seq))).collect();
        let at = "2025-08-24T17:00:00Z".parse().unwrap();
        crate::store::Snapshot::new(at, (at, at), saved).unwrap()
    };
    // The model writes its summary while another process forgets all of its messages.
    open(&directory).await.forget(&[1..=3]).await.unwrap();
    let refused = store.save_snapshot(saved(&[1, 2, 3])).await;
    assert!(matches!(refused, Err(crate::Error::EmptySnapshot)), "{refused:?}");
    assert!(store.snapshots().await.unwrap().0.is_empty());
    // Another conversation has begun in its place.
    let store = open(&Arc::new(MemoryDirectory::default())).await;
    assert!(store.save_snapshot(saved(&[1, 2, 3])).await.is_err());
    appended(&store, 1..=2).await;
    store.forget(&[1..=1]).await.unwrap();
    store.save_snapshot(saved(&[1, 2])).await.unwrap();
    assert_eq!(store.snapshots().await.unwrap().0[0].messages.len(), 1);
}

#[tokio::test]
async fn under_a_clock_at_either_end_of_time_nothing_panics() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
    let clock = Arc::new(crate::clock::ManualClock::at_utc(jiff::Timestamp::MIN));
    let key = EncryptionKey::from_secret("a secret of the tests of rollbacks").unwrap();
    let options = StoreOptions::new(key).clock(clock.clone());
    let store = options.open_directory(directory.clone(), directory).await.unwrap();
    let at = |now| crate::ChatMessage::at(crate::ChatRole::User, "x", now);
    let refused = store.append_message(at(jiff::Timestamp::MIN)).await;
    assert!(matches!(refused, Err(crate::Error::InvalidMessage { .. })), "{refused:?}");
    // The latest time that a clock can show.
    clock.set(jiff::Timestamp::MAX.to_zoned(jiff::tz::TimeZone::UTC));
    store.append_message(at(jiff::Timestamp::MAX)).await.unwrap();
    store.clear().await.unwrap();
    store.forget(&[1..=1]).await.unwrap();
    store.cleanup().await.unwrap();
    store.append_message(at(jiff::Timestamp::MAX)).await.unwrap();
    assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_head_that_lags_behind_after_a_power_cut_is_no_contradiction() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    appended(&store, 1..=3).await;
    let head = bytes(&directory, "head");
    appended(&store, 4..=5).await;
    store.forget(&[2..=2]).await.unwrap();
    directory.overwrite("head", &head).unwrap();
    for store in [store, open(&directory).await] {
        let reading = store.read_tail(9).await.unwrap();
        assert!(reading.skipped.is_empty() && reading.last_seq == 6, "{reading:?}");
    }
    assert!(open(&directory).await.verify(|_| {}).await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_message_that_was_removed_from_the_middle_is_missed_by_a_plain_read() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    appended(&store, 1..=5).await;
    store.forget(&[2..=2]).await.unwrap();
    assert!(open(&directory).await.read_tail(9).await.unwrap().skipped.is_empty());
    directory.remove(&name(&directory, "_0004_")).unwrap();
    for n in [1, 9] {
        let store = open(&directory).await;
        assert_eq!(found(&store.read_tail(n).await.unwrap()), [("missing", Some((4, 4)))]);
        assert_eq!(found(&store.read_seqs(1..=3).await.unwrap()), [("missing", Some((4, 4)))]);
    }
    appended(&open(&directory).await, 7..=7).await;
    let store = open(&directory).await;
    assert_eq!(found(&store.read_tail(9).await.unwrap()), [("missing", Some((4, 4)))]);
    // Who knows of the loss records it, and is not told again.
    store.forget(&[4..=4]).await.unwrap();
    assert!(open(&directory).await.read_tail(9).await.unwrap().skipped.is_empty());
}

/// A store in a folder, with its witness in another.
struct Witnessed(tempfile::TempDir);

impl Witnessed {
    async fn open(&self, scope: Scope) -> FileConversationStore {
        let key = EncryptionKey::from_secret("a secret of the tests of rollbacks").unwrap();
        let options = StoreOptions::new(key).scope(scope).witness(self.0.path().join("witness"));
        options.open(self.0.path().join("store")).await.unwrap()
    }

    fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.0.path().join(from), self.0.path().join(to));
        let _ = std::fs::remove_dir_all(&to);
        let status = std::process::Command::new("cp").arg("-a").args([from, to]).status();
        assert!(status.unwrap().success());
    }

    async fn findings(&self, scope: Scope) -> Vec<(&'static str, Option<(u64, u64)>)> {
        found(&self.open(scope).await.read_tail(9).await.unwrap())
    }
}

#[tokio::test]
async fn a_whole_store_that_was_put_back_is_noticed_by_the_next_read() {
    let house = Witnessed(tempfile::tempdir().unwrap());
    appended(&house.open(Scope::Default).await, 1..=3).await;
    house.copy("store", "copy");
    house.open(Scope::Default).await.forget(&[1..=1]).await.unwrap();
    appended(&house.open(Scope::Default).await, 5..=6).await;
    assert_eq!(house.findings(Scope::Default).await, []);
    house.copy("copy", "store");
    for _ in 0..2 {
        let found = house.findings(Scope::Default).await;
        let expected = [("put-back", Some((4, 6))), ("forget-missing", Some((4, 4)))];
        assert_eq!(found.split_first(), Some((&("absent", None), &expected[..])));
    }
    let store = house.open(Scope::Default).await;
    let report = store.verify(|_| {}).await.unwrap();
    let put_back = report.findings.iter().find(|found| found.kind.code() == "put-back").unwrap();
    assert!(put_back.to_string().contains("older than it was on 2"), "{put_back}");

    // What was given once is not given again.
    house.copy("store", "accepted");
    appended(&store, 7..=7).await;
    house.copy("accepted", "store");
    let repaired = house.open(Scope::Default).await;
    repaired.repair(RepairOptions::default(), |_| {}).await.unwrap();
    assert_eq!(house.findings(Scope::Default).await, []);
}

#[tokio::test]
async fn a_witness_that_is_lost_or_of_another_store_shows_nothing() {
    let house = Witnessed(tempfile::tempdir().unwrap());
    appended(&house.open(Scope::Default).await, 1..=3).await;
    // Another store in the same folder, under the same secret.
    std::fs::remove_dir_all(house.0.path().join("store")).unwrap();
    appended(&house.open(Scope::Default).await, 1..=2).await;
    assert_eq!(house.findings(Scope::Default).await, []);
    // Lost, and not to be made again.
    std::fs::remove_dir_all(house.0.path().join("witness")).unwrap();
    std::fs::write(house.0.path().join("witness"), "").unwrap();
    appended(&house.open(Scope::Default).await, 3..=3).await;
    assert_eq!(house.findings(Scope::Default).await, []);
    std::fs::remove_file(house.0.path().join("witness")).unwrap();
    // Moved, with the witness of its former place.
    appended(&house.open(Scope::Default).await, 4..=4).await;
    house.copy("store", "elsewhere");
    std::fs::remove_dir_all(house.0.path().join("store")).unwrap();
    house.copy("elsewhere", "store");
    assert_eq!(house.findings(Scope::Default).await, []);
}
