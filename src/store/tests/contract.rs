//! The contract of conversation stores, run on a folder on disk and on one in memory.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::clock::ManualClock;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::record::read_result::ReadResult;
use crate::store::{ConversationStore, Document, FileConversationStore, StoreOptions};
use crate::{ChatMessage, ChatRole, EncryptionKey, Error};

const START: &str = "2025-08-24T16:36:25.123Z";

/// Storage that outlives the stores opened on it.
enum Place {
    Folder(TempDir),
    Memory(Arc<MemoryDirectory>),
}

struct Backend {
    place: Place,
    clock: Arc<ManualClock>,
    loose: usize,
}

impl Backend {
    fn new(place: Place) -> Self {
        Self { place, clock: Arc::new(ManualClock::at_utc(time(START))), loose: 64 }
    }

    fn folder() -> Self {
        Self::new(Place::Folder(tempfile::tempdir().unwrap()))
    }

    fn memory() -> Self {
        Self::new(Place::Memory(Arc::default()))
    }

    /// The same storage with nearly everything in packs.
    fn packing(self) -> Self {
        Self { loose: 1, ..self }
    }

    async fn open(&self) -> FileConversationStore {
        self.open_with(|options| options).await
    }

    async fn open_with(
        &self,
        change: impl FnOnce(StoreOptions) -> StoreOptions,
    ) -> FileConversationStore {
        let key = EncryptionKey::from_secret("a secret of the contract tests").unwrap();
        let options = StoreOptions::new(key).clock(self.clock.clone()).loose_files(self.loose);
        let options = change(options);
        match &self.place {
            Place::Folder(folder) => options.open(folder.path().join("root")).await.unwrap(),
            Place::Memory(directory) => {
                let directory: Arc<dyn Directory> = directory.clone();
                options.open_directory(directory.clone(), directory).await.unwrap()
            }
        }
    }

    fn set_clock(&self, to: &str) {
        self.clock.set(time(to).to_zoned(jiff::tz::TimeZone::UTC));
    }
}

async fn each(test: impl AsyncFn(Backend)) {
    test(Backend::memory()).await;
    test(Backend::folder()).await;
    test(Backend::memory().packing()).await;
    test(Backend::folder().packing()).await;
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn said(text: &str) -> ChatMessage {
    said_at(text, START)
}

fn said_at(text: &str, at: &str) -> ChatMessage {
    ChatMessage::at(ChatRole::User, text, time(at))
}

fn numbered(range: RangeInclusive<u64>) -> Vec<ChatMessage> {
    range.map(|n| said(&n.to_string())).collect()
}

fn texts(reading: &ReadResult) -> Vec<&str> {
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages.iter().map(|stored| stored.message.content.as_str()).collect()
}

fn seqs(reading: &ReadResult) -> Vec<u64> {
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages.iter().map(|stored| stored.seq).collect()
}

#[tokio::test]
async fn an_empty_store_reads_as_empty_and_sound() {
    each(async |backend| {
        let store = backend.open().await;
        assert!(texts(&store.read_tail(10).await.unwrap()).is_empty());
        assert!(texts(&store.read_seqs(1..=u64::MAX).await.unwrap()).is_empty());
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
        assert!(store.forget(&[1..=5]).await.unwrap().removed.is_empty());
        assert_eq!(store.append_message(said("first")).await.unwrap().seq, 1);
    })
    .await;
}

#[tokio::test]
async fn a_store_in_memory_needs_no_folder_and_is_gone_when_dropped() {
    for _ in 0..2 {
        let key = EncryptionKey::from_secret("a secret of the contract tests").unwrap();
        let store = StoreOptions::new(key).open_in_memory().await.unwrap();
        assert_eq!(store.append_message(said("words")).await.unwrap().seq, 1);
        assert_eq!(texts(&store.read_tail(2).await.unwrap()), ["words"]);
    }
}

#[tokio::test]
async fn messages_come_back_oldest_first_under_contiguous_numbers() {
    each(async |backend| {
        let store = backend.open().await;
        for n in 1..=5 {
            let stored = store.append_message(said(&n.to_string())).await.unwrap();
            assert_eq!((stored.seq, stored.message.content.clone()), (n, n.to_string()));
        }
        for store in [store, backend.open().await] {
            for (n, expected) in
                [(0, &[][..]), (1, &["5"]), (3, &["3", "4", "5"]), (5, &["1", "2", "3", "4", "5"])]
            {
                assert_eq!(texts(&store.read_tail(n).await.unwrap()), expected, "tail of {n}");
            }
            let all = store.read_tail(usize::MAX).await.unwrap();
            assert_eq!(seqs(&all), [1, 2, 3, 4, 5]);
            assert!(all.messages.iter().all(|stored| stored.scope == *store.scope()));
        }
    })
    .await;
}

#[tokio::test]
async fn a_tail_longer_than_what_stays_in_memory_is_whole() {
    each(async |backend| {
        let store = backend.open().await;
        store.append_all(numbered(1..=300)).await.unwrap();
        store.append_message(said("301")).await.unwrap();
        for n in [1, 127, 128, 129, 200, 301, 1000] {
            let expected: Vec<u64> = (302 - u64::try_from(n).unwrap().min(301)..=301).collect();
            assert_eq!(seqs(&store.read_tail(n).await.unwrap()), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn numbers_go_on_where_an_earlier_run_stopped() {
    each(async |backend| {
        for n in 1..=4 {
            let store = backend.open().await;
            assert_eq!(store.append_message(said("again")).await.unwrap().seq, n);
        }
        let store = backend.open().await;
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_batch_is_kept_in_its_order() {
    each(async |backend| {
        let store = backend.open().await;
        assert!(store.append_all(Vec::new()).await.unwrap().is_empty());
        store.append_message(said("1")).await.unwrap();
        let stored = store.append_all(numbered(2..=4)).await.unwrap();
        assert_eq!(stored.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "3", "4"]);
        assert_eq!(texts(&backend.open().await.read_tail(9).await.unwrap()), ["1", "2", "3", "4"]);
    })
    .await;
}

#[tokio::test]
async fn a_refused_message_in_a_batch_refuses_the_whole_batch() {
    each(async |backend| {
        let store = backend.open().await;
        let mut batch = numbered(1..=3);
        batch.push(said_at("from the future", "2025-08-27T00:00:00Z"));
        assert!(matches!(store.append_all(batch).await, Err(Error::FromTheFuture)));
        assert!(store.read_tail(9).await.unwrap().messages.is_empty());
    })
    .await;
}

#[tokio::test]
async fn ranges_of_numbers_and_of_times_give_what_lies_in_them() {
    each(async |backend| {
        let store = backend.open().await;
        for (n, at) in
            ["10:00:00.000", "10:00:00.001", "10:00:00.002", "10:00:01.999"].into_iter().enumerate()
        {
            let at = format!("2025-08-24T{at}Z");
            store.append_message(said_at(&n.to_string(), &at)).await.unwrap();
        }
        for (range, expected) in
            [(1..=1, &[1][..]), (2..=3, &[2, 3]), (4..=99, &[4]), (5..=9, &[]), (0..=1, &[1])]
        {
            assert_eq!(seqs(&store.read_seqs(range).await.unwrap()), expected);
        }
        #[expect(clippy::reversed_empty_ranges, reason = "an empty range is a valid question")]
        let backwards = 3..=2;
        assert!(seqs(&store.read_seqs(backwards).await.unwrap()).is_empty());
        for (from, to, expected) in [
            ("10:00:00.000", "10:00:00.001", &[1][..]),
            ("10:00:00.001", "10:00:02.000", &[2, 3, 4]),
            ("10:00:00.003", "10:00:01.999", &[]),
            ("10:00:01.999", "10:00:01.999", &[]),
            ("10:00:00.000", "10:00:02.000", &[1, 2, 3, 4]),
        ] {
            let moment = |clock| time(&format!("2025-08-24T{clock}Z"));
            let reading = store.read_times(moment(from)..moment(to)).await.unwrap();
            assert_eq!(seqs(&reading), expected, "{from} to {to}");
        }
        assert_eq!(
            seqs(&store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap()),
            [1, 2, 3, 4]
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_forgotten_is_never_returned_and_its_number_never_reused() {
    each(async |backend| {
        let store = backend.open().await;
        store.append_all(numbered(1..=6)).await.unwrap();
        let forgotten = store.forget(&[2..=2]).await.unwrap();
        assert_eq!((forgotten.removed, forgotten.left), (vec![2], vec![]));
        assert_eq!(seqs(&store.read_tail(9).await.unwrap()), [1, 3, 4, 5, 6]);

        let forgotten = store.forget(&[5..=u64::MAX, 1..=1]).await.unwrap();
        assert_eq!(forgotten.removed, [1, 5, 6]);
        for store in [&store, &backend.open().await] {
            assert_eq!(seqs(&store.read_tail(9).await.unwrap()), [3, 4]);
            assert_eq!(seqs(&store.read_seqs(0..=u64::MAX).await.unwrap()), [3, 4]);
            let report = store.verify(|_| {}).await.unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            // The forget records took 7 and 8; the first was deleted with the second.
            assert_eq!((report.messages, report.last_seq, report.forgotten), (2, 8, 5));
        }
        assert_eq!(store.append_message(said("new")).await.unwrap().seq, 9);
        assert_eq!(seqs(&store.read_tail(9).await.unwrap()), [3, 4, 9]);
    })
    .await;
}

#[tokio::test]
async fn forgetting_again_changes_nothing() {
    each(async |backend| {
        let store = backend.open().await;
        store.append_all(numbered(1..=3)).await.unwrap();
        store.forget(&[1..=2]).await.unwrap();
        for again in [&[1..=2][..], &[1..=1, 2..=2], &[9..=12], &[]] {
            assert!(store.forget(again).await.unwrap().removed.is_empty());
        }
        let report = store.verify(|_| {}).await.unwrap();
        assert_eq!((report.last_seq, report.forgotten, report.messages), (4, 2, 1));
    })
    .await;
}

#[tokio::test]
async fn the_last_message_can_be_forgotten_time_and_again() {
    each(async |backend| {
        let store = backend.open().await;
        let mut next = 1;
        for _ in 0..4 {
            let seq = store.append_message(said("short-lived")).await.unwrap().seq;
            assert_eq!(seq, next);
            assert_eq!(store.forget(&[seq..=seq]).await.unwrap().removed, [seq]);
            assert!(seqs(&store.read_tail(9).await.unwrap()).is_empty());
            next += 2;
        }
        let reopened = backend.open().await;
        assert_eq!(reopened.append_message(said("stays")).await.unwrap().seq, next);
        assert_eq!(seqs(&reopened.read_tail(9).await.unwrap()), [next]);
        // The other store sees it too, and notices that its cache is outdated.
        assert_eq!(seqs(&store.read_tail(9).await.unwrap()), [next]);
    })
    .await;
}

#[tokio::test]
async fn a_range_over_an_earlier_forget_record_takes_that_record_over() {
    each(async |backend| {
        let store = backend.open().await;
        store.append_all(numbered(1..=3)).await.unwrap();
        store.forget(&[2..=2]).await.unwrap();
        store.append_message(said("5")).await.unwrap();
        assert_eq!(store.forget(&[1..=4]).await.unwrap().removed, [1, 3]);
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!((report.messages, report.last_seq, report.forgotten), (1, 6, 4));
        assert_eq!(seqs(&backend.open().await.read_tail(9).await.unwrap()), [5]);
    })
    .await;
}

#[tokio::test]
async fn a_message_at_the_size_limit_is_kept_and_one_byte_more_is_not() {
    each(async |backend| {
        let words = "x".repeat(1000);
        let size = serde_json::to_vec(&said(&words)).unwrap().len();
        let store = backend.open_with(|options| options.max_message_bytes(size)).await;
        let refused = store.append_message(said(&(words.clone() + "x"))).await;
        assert!(matches!(
            refused,
            Err(Error::TooLarge { size: found, limit }) if (found, limit) == (size + 1, size)
        ));
        assert!(seqs(&store.read_tail(9).await.unwrap()).is_empty());
        assert_eq!(store.append_message(said(&words)).await.unwrap().seq, 1);
        // A quotation mark takes two bytes in JSON, which is what the limit counts.
        let quoted = words.replacen('x', "\"", 1);
        assert!(matches!(store.append_message(said(&quoted)).await, Err(Error::TooLarge { .. })));
        assert_eq!(texts(&backend.open().await.read_tail(9).await.unwrap()), [words.as_str()]);
    })
    .await;
}

async fn document(store: &FileConversationStore) -> Option<Vec<u8>> {
    store.read_document(Document::Calibration).await.unwrap().map(|bytes| bytes.to_vec())
}

#[tokio::test]
async fn a_document_is_what_was_last_written_and_counts_as_no_message() {
    each(async |backend| {
        let (store, other) = (backend.open().await, backend.open().await);
        assert_eq!(document(&store).await, None);
        let every_byte: Vec<u8> = (0..=255).collect();
        for (bytes, writer) in [(&b"{}"[..], &store), (&[], &other), (&every_byte, &store)] {
            writer.write_document(Document::Calibration, bytes).await.unwrap();
            for store in [&store, &other, &backend.open().await] {
                assert_eq!(document(store).await.as_deref(), Some(bytes));
                assert!(seqs(&store.read_tail(9).await.unwrap()).is_empty());
            }
            let report = other.verify(|_| {}).await.unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            assert_eq!((report.messages, report.last_seq), (0, 0));
        }
        assert_eq!(other.append_message(said("1")).await.unwrap().seq, 1);
        store.write_document(Document::Calibration, b"after").await.unwrap();
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1"]);
        assert_eq!(store.append_message(said("2")).await.unwrap().seq, 2);
        store.forget(&[1..=2]).await.unwrap();
        assert_eq!(
            document(&other).await.unwrap(),
            b"after",
            "no message, so not forgotten as one"
        );
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_document_at_the_size_limit_is_kept_and_one_byte_more_is_not() {
    each(async |backend| {
        let store = backend.open_with(|options| options.max_message_bytes(100)).await;
        store.write_document(Document::Calibration, &[7; 100]).await.unwrap();
        assert!(matches!(
            store.write_document(Document::Calibration, &[8; 101]).await,
            Err(Error::TooLarge { size: 101, limit: 100 })
        ));
        assert_eq!(document(&store).await.unwrap(), [7; 100]);
    })
    .await;
}

#[tokio::test]
async fn the_largest_limit_leaves_files_that_can_be_read_again() {
    let backend = Backend::folder();
    let store = backend.open_with(|options| options.max_message_bytes(usize::MAX)).await;
    let Err(Error::TooLarge { limit, .. }) =
        store.append_message(said(&"x".repeat(12 << 20))).await
    else {
        panic!("12 MiB were taken");
    };
    let stored = store.append_message(said("words")).await.unwrap();
    let Place::Folder(folder) = &backend.place else { unreachable!() };
    let file = folder.path().join("root").join(stored.file_name());
    let in_base64 = |bytes: usize| bytes.div_ceil(3) * 4;
    let plaintext = serde_json::to_vec(&stored.message).unwrap();
    let around =
        usize::try_from(file.metadata().unwrap().len()).unwrap() - in_base64(plaintext.len());
    assert!(around + in_base64(limit) <= usize::try_from(crate::directory::READ_LIMIT).unwrap());
}

#[tokio::test]
async fn a_message_more_than_a_day_ahead_of_the_clock_is_refused() {
    each(async |backend| {
        let store = backend.open().await;
        let ahead = time(START).checked_add(SignedDuration::from_hours(24)).unwrap();
        let mut message = said("tomorrow");
        message.timestamp = ahead;
        store.append_message(message.clone()).await.unwrap();
        message.timestamp = ahead.checked_add(SignedDuration::from_nanos(1)).unwrap();
        assert!(matches!(store.append_message(message).await, Err(Error::FromTheFuture)));
        assert_eq!(seqs(&store.read_tail(9).await.unwrap()), [1]);
    })
    .await;
}

#[tokio::test]
async fn a_clock_set_back_or_far_ahead_keeps_the_order_and_the_newest_words_in_the_tail() {
    for wrong in [
        "2025-08-23T16:36:25.123Z",
        "1970-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-30T21:59:59.999Z",
    ] {
        each(async |backend| {
            let store = backend.open().await;
            store.append_message(said("1")).await.unwrap();
            store.append_message(said("2")).await.unwrap();
            backend.set_clock(wrong);
            let off = store.append_message(said_at("3", wrong)).await.unwrap();
            assert_eq!(off.message.timestamp, time(wrong));
            // The clock is corrected, and the program restarts in between.
            backend.set_clock("2025-08-24T16:40:00Z");
            let store = backend.open().await;
            store.append_message(said_at("4", "2025-08-24T16:40:00Z")).await.unwrap();
            store.append_all(vec![said("5")]).await.unwrap();
            for store in [store, backend.open().await] {
                assert_eq!(texts(&store.read_tail(2).await.unwrap()), ["4", "5"], "{wrong}");
                let all = store.read_tail(9).await.unwrap();
                assert_eq!(texts(&all), ["1", "2", "3", "4", "5"], "{wrong}");
                assert!(all.messages.is_sorted_by_key(|stored| (stored.ordered_at(), stored.seq)));
                assert_eq!(all.messages[2].message.timestamp, time(wrong));
                assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
            }
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_imported_keeps_its_own_time_and_what_is_said_afterwards_still_comes_last() {
    each(async |backend| {
        let store = backend.open().await;
        store.append_all(vec![said("1"), said("2")]).await.unwrap();
        let (older, oldest) = ("2023-05-08T13:56:20Z", "2023-05-08T13:56:19.999Z");
        let imported = vec![said_at("3", older), said_at("4", oldest), said_at("5", older)];
        let stored = store.import(imported).await.unwrap();
        assert!(stored.iter().map(|stored| stored.seq).eq(3..=5));
        assert_eq!(stored[1].ordered_at(), time(oldest));
        store.append_message(said_at("6", older)).await.unwrap();
        for store in [store, backend.open().await] {
            let all = store.read_tail(9).await.unwrap();
            assert_eq!(texts(&all), ["4", "3", "5", "1", "2", "6"]);
            assert_eq!(texts(&store.read_tail(2).await.unwrap()), ["2", "6"]);
            assert_eq!(seqs(&store.read_seqs(2..=4).await.unwrap()), [4, 3, 2]);
            let times = store.read_times(time(oldest)..time(START)).await.unwrap();
            assert_eq!(texts(&times), ["4", "3", "5"]);
            assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
        }
        let store = backend.open().await;
        assert_eq!(store.forget(&[3..=4]).await.unwrap().removed, [3, 4]);
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["5", "1", "2", "6"]);
        let late = said_at("late", "2025-08-25T16:36:25.124Z");
        assert!(matches!(store.import(vec![late]).await, Err(Error::FromTheFuture)));
    })
    .await;
}

#[tokio::test]
async fn a_time_before_the_year_0_is_an_error_and_the_end_of_time_is_not() {
    each(async |backend| {
        let store = backend.open().await;
        let mut message = said("words");
        message.timestamp = Timestamp::MIN;
        assert!(matches!(
            store.append_message(message.clone()).await,
            Err(Error::InvalidMessage { .. })
        ));
        backend.clock.set(Timestamp::MAX.to_zoned(jiff::tz::TimeZone::UTC));
        message.timestamp = Timestamp::MAX;
        store.append_all(vec![message.clone(), message.clone()]).await.unwrap();
        store.forget(&[1..=1]).await.unwrap();
        store.append_message(said("later")).await.unwrap();
        assert_eq!(texts(&backend.open().await.read_tail(9).await.unwrap()), ["words", "later"]);
    })
    .await;
}

fn answer(text: &str) -> Vec<ChatMessage> {
    vec![ChatMessage::at(ChatRole::Assistant, text, time(START))]
}

#[tokio::test]
async fn an_answer_is_kept_only_while_its_utterance_is_there() {
    each(async |backend| {
        let (one, other) = (backend.open().await, backend.open().await);
        let utterances = one.append_all(numbered(1..=3)).await.unwrap();
        let kept = one.append_answers(answer("to 1"), &utterances[0]).await.unwrap();
        assert_eq!(kept[0].seq, 4);
        other.forget(&[2..=2]).await.unwrap();
        let refused = one.append_answers(answer("to 2"), &utterances[1]).await;
        assert!(matches!(refused, Err(Error::UtteranceForgotten)), "{refused:?}");
        // A forgotten utterance does not affect the answer to another one, however old that is.
        one.append_all(numbered(5..=300)).await.unwrap();
        backend.open().await.append_answers(answer("to 3"), &utterances[2]).await.unwrap();
        let newest = other.read_tail(1).await.unwrap();
        assert_eq!(texts(&newest), ["to 3"]);

        let last = newest.last_seq;
        other.forget(&[1..=last]).await.unwrap();
        for utterance in &utterances {
            let refused = one.append_answers(answer("to what is gone"), utterance).await;
            assert!(matches!(refused, Err(Error::UtteranceForgotten)), "{refused:?}");
        }
        assert!(texts(&one.read_tail(9).await.unwrap()).is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_document_beside_an_answer_is_replaced_only_while_the_utterance_is_there() {
    each(async |backend| {
        let (one, other) = (backend.open().await, backend.open().await);
        let utterances = one.append_all(numbered(1..=2)).await.unwrap();
        let keep = async |text: &str, of: usize, bytes: &'static [u8]| {
            let answered = &utterances[of];
            let document = Document::Calibration;
            one.append_answers_with_document(answer(text), answered, document, bytes).await
        };
        let (kept, written) = keep("to 1", 0, b"learnt").await.unwrap();
        assert_eq!(kept[0].seq, 3);
        written.unwrap();
        for store in [&one, &other, &backend.open().await] {
            assert_eq!(document(store).await.unwrap(), b"learnt");
            assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "to 1"]);
        }
        other.forget(&[2..=2]).await.unwrap();
        let refused = keep("to 2", 1, b"more").await;
        assert!(matches!(refused, Err(Error::UtteranceForgotten)), "{refused:?}");
        assert_eq!(document(&other).await.unwrap(), b"learnt");
        // A document that is too long does not prevent storing the answer.
        let long = vec![7; 32 << 20];
        let (utterance, calibration) = (&utterances[0], Document::Calibration);
        let kept = one.append_answers_with_document(answer("more"), utterance, calibration, &long);
        let (kept, written) = kept.await.unwrap();
        assert!(kept.len() == 1 && matches!(written, Err(Error::TooLarge { .. })), "{written:?}");
        assert_eq!(document(&other).await.unwrap(), b"learnt");
        assert!(one.verify(|_| {}).await.unwrap().findings.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_range_that_is_read_again_shows_what_was_appended_forgotten_and_packed_since() {
    each(async |backend| {
        let backend = backend.packing();
        let (one, other) = (backend.open().await, backend.open().await);
        one.append_all(numbered(1..=200)).await.unwrap();
        let all = || other.read_times(Timestamp::MIN..Timestamp::MAX);
        let some = || other.read_seqs(40..=59);
        for _ in 0..3 {
            assert_eq!(seqs(&all().await.unwrap()), (1..=200).collect::<Vec<_>>());
            assert_eq!(seqs(&some().await.unwrap()), (40..=59).collect::<Vec<_>>());
            assert_eq!(seqs(&other.read_seqs(45..=46).await.unwrap()), [45, 46]);
        }
        one.append_all(numbered(201..=203)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(seqs(&all().await.unwrap()), (1..=203).collect::<Vec<_>>());
        }
        one.forget(&[45..=45, 203..=203]).await.unwrap();
        for _ in 0..2 {
            assert_eq!(all().await.unwrap().messages.len(), 201);
            assert_eq!(some().await.unwrap().messages.len(), 19);
            assert_eq!(seqs(&other.read_seqs(45..=46).await.unwrap()), [46]);
        }
        for seq in 205..=300 {
            one.append_all(numbered(seq..=seq)).await.unwrap();
        }
        for store in [&one, &other] {
            let found = store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap();
            assert_eq!(found.messages.len(), 297);
            assert!(found.skipped.is_empty());
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_not_taken_for_that_to_another_message_of_the_same_number() {
    each(async |backend| {
        // As if the whole conversation was removed and begun again.
        let removed = Backend::memory().open().await;
        let utterance = removed.append_message(said("before")).await.unwrap();
        let store = backend.open().await;
        let now = said_at("after", "2025-08-24T17:00:00Z");
        assert_eq!(store.append_message(now).await.unwrap().seq, utterance.seq);
        let refused = store.append_answers(answer("to what was before"), &utterance).await;
        assert!(matches!(refused, Err(Error::UtteranceForgotten)), "{refused:?}");
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["after"]);
    })
    .await;
}

#[tokio::test]
async fn an_answer_to_what_was_cleared_is_kept_and_no_context() {
    each(async |backend| {
        let (one, other) = (backend.open().await, backend.open().await);
        let before = one.append_message(said("before")).await.unwrap();
        other.clear().await.unwrap();
        let after = other.append_message(said("after")).await.unwrap();
        let late = one.append_answers(answer("late"), &before).await.unwrap();
        let prompt = one.append_answers(answer("prompt"), &after).await.unwrap();
        let profile = other.profile().await.unwrap();
        assert!(profile.is_pruned(late[0].seq));
        assert!(!profile.is_pruned(prompt[0].seq));
        assert_eq!(
            texts(&other.read_tail(9).await.unwrap()),
            ["before", "after", "late", "prompt"]
        );
    })
    .await;
}

#[tokio::test]
async fn an_answer_to_an_expired_utterance_or_to_another_conversation_is_not_kept() {
    each(async |backend| {
        let expiring = crate::store::Retention::FOREVER.ttl_seconds(60);
        let store = backend.open_with(|options| options.retention(expiring)).await;
        let utterance = store.append_message(said("old")).await.unwrap();
        backend.set_clock("2025-08-24T17:00:00Z");
        let refused = store.append_answers(answer("late"), &utterance).await;
        assert!(matches!(refused, Err(Error::UtteranceForgotten)), "{refused:?}");
        assert!(texts(&store.read_tail(9).await.unwrap()).is_empty());
    })
    .await;
    let backend = Backend::folder();
    let store = backend.open().await;
    store.append_message(said("here")).await.unwrap();
    let elsewhere = crate::Scope::Dm { user: "42".into() };
    let elsewhere = backend.open_with(|options| options.scope(elsewhere)).await;
    let utterance = elsewhere.append_message(said("there")).await.unwrap();
    let refused = store.append_answers(answer("here too"), &utterance).await;
    assert!(matches!(refused, Err(Error::OtherScope)), "{refused:?}");
    assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["here"]);
}

#[tokio::test]
async fn messages_of_the_same_millisecond_and_role_are_distinct_and_stay_in_order() {
    each(async |backend| {
        // A new store each time: restarts within one millisecond must not collide either.
        for n in 1..=12 {
            backend.open().await.append_message(said(&n.to_string())).await.unwrap();
        }
        let expected: Vec<String> = (1..=12).map(|n| n.to_string()).collect();
        for _ in 0..3 {
            let reading = backend.open().await.read_tail(20).await.unwrap();
            assert_eq!(texts(&reading), expected);
            let names: BTreeSet<_> = reading.messages.iter().map(|m| m.file_name()).collect();
            assert_eq!(names.len(), 12);
        }
    })
    .await;
}

#[tokio::test]
async fn numbers_beyond_four_digits_still_sort_as_numbers() {
    let backend = Backend::memory();
    let store = backend.open().await;
    store.append_all(vec![said("x"); 9_998]).await.unwrap();
    for n in 9_999..=10_002 {
        assert_eq!(store.append_message(said("y")).await.unwrap().seq, n);
    }
    let reading = backend.open().await.read_tail(5).await.unwrap();
    assert_eq!(seqs(&reading), [9_998, 9_999, 10_000, 10_001, 10_002]);
}

#[tokio::test]
async fn difficult_text_and_every_field_come_back_exactly() {
    each(async |backend| {
        let store = backend.open().await;
        let mut messages = Vec::new();
        for (text, role) in [
            "",
            "\0\u{1}\u{1f}\u{7f}\u{85}",
            "\u{202e}right to left\u{202c} \u{200f}שלום عالم",
            "👩‍👩‍👧‍👦🏳️‍🌈 e\u{301} é \u{1f1e6}\u{1f1f9}",
            "\"quoted\" \\ \n\r\t \u{2028}\u{2029} </script>",
            "\u{feff}mark \u{fffd} \u{10ffff} \u{e000}",
            " trailing and leading ",
        ]
        .into_iter()
        .zip(ChatRole::ALL.into_iter().cycle())
        {
            let mut message = said(text).with_metadata(text, text);
            message.role = role;
            message.timestamp = time("2025-08-24T16:36:25.123456789Z");
            message.thread_id = Some(text.into());
            message.tool_call_id = Some(text.into());
            message.offset_minutes = Some(-210);
            message.tool_calls = vec![crate::ToolCall {
                id: text.into(),
                name: text.into(),
                arguments: serde_json::json!({ text: [text, null, 1.5, -3, u64::MAX] }),
            }];
            messages.push(message);
        }
        for message in &messages {
            store.append_message(message.clone()).await.unwrap();
        }
        for store in [store, backend.open().await] {
            let reading = store.read_tail(99).await.unwrap();
            assert!(reading.skipped.is_empty());
            let found: Vec<_> = reading.messages.iter().map(|m| m.message.clone()).collect();
            assert!(found == messages);
        }
    })
    .await;
}

#[tokio::test]
async fn two_stores_on_one_place_see_each_others_changes_at_once() {
    each(async |backend| {
        let (one, other) = (backend.open().await, backend.open().await);
        for n in 1..=6 {
            let (writes, reads) = if n % 2 == 0 { (&one, &other) } else { (&other, &one) };
            assert_eq!(writes.append_message(said("words")).await.unwrap().seq, n);
            assert_eq!(seqs(&reads.read_tail(1).await.unwrap()), [n]);
        }
        one.forget(&[2..=6]).await.unwrap();
        assert_eq!(seqs(&other.read_tail(9).await.unwrap()), [1]);
        assert_eq!(other.append_message(said("words")).await.unwrap().seq, 8);
        assert_eq!(seqs(&one.read_tail(9).await.unwrap()), [1, 8]);
    })
    .await;
}

#[tokio::test]
async fn scopes_on_one_root_share_nothing_but_the_vault() {
    use crate::Scope;
    let backend = Backend::folder();
    let scopes = [
        Scope::Dm { user: "bob".into() },
        Scope::Dm { user: "Bob".into() },
        Scope::Named { id: "bob".into() },
        Scope::Guild { guild: "g".into(), channel: "c".into(), user: "bob".into() },
        Scope::Default,
    ];
    for _ in 0..2 {
        for scope in &scopes {
            let store = backend.open_with(|options| options.scope(scope.clone())).await;
            store.append_message(said(&format!("{scope:?}"))).await.unwrap();
        }
    }
    for scope in &scopes {
        let store = backend.open_with(|options| options.scope(scope.clone())).await;
        let reading = store.read_tail(9).await.unwrap();
        assert_eq!(texts(&reading), vec![format!("{scope:?}"); 2]);
        assert_eq!(seqs(&reading), [1, 2]);
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    }
}

/// The expected contents of a store, in the simplest form.
#[derive(Default)]
struct Model {
    live: Vec<(u64, i64, ChatMessage)>,
    last_seq: u64,
    newest: i64,
    erased: BTreeSet<u64>,
    forgets: Vec<u64>,
}

impl Model {
    fn append(&mut self, message: &ChatMessage) -> u64 {
        self.last_seq += 1;
        let said = message.timestamp.as_nanosecond().div_euclid(1_000_000);
        let said = i64::try_from(said).unwrap();
        let until = (said % 1000 - self.newest % 1000).rem_euclid(1000);
        self.newest = match said < self.newest {
            true if (1..=900).contains(&until) => self.newest + until,
            true => self.newest + 1,
            false => said,
        };
        self.live.push((self.last_seq, self.newest, message.clone()));
        self.last_seq
    }

    fn import(&mut self, message: &ChatMessage) -> u64 {
        let newest = self.newest;
        self.newest = i64::MIN;
        let seq = self.append(message);
        self.newest = self.newest.max(newest);
        self.live.sort_by_key(|(seq, at, _)| (*at, *seq));
        seq
    }

    fn forget(&mut self, ranges: &[RangeInclusive<u64>], now: i64) -> Vec<u64> {
        let wanted: BTreeSet<u64> =
            (1..=self.last_seq).filter(|seq| ranges.iter().any(|r| r.contains(seq))).collect();
        if wanted.is_subset(&self.erased) {
            return Vec::new();
        }
        self.erased.extend(wanted);
        self.erased.append(&mut self.forgets.drain(..).collect());
        self.last_seq += 1;
        self.forgets.push(self.last_seq);
        self.newest = self.newest.max(now);
        let mut gone: Vec<u64> =
            self.live.iter().map(|m| m.0).filter(|seq| self.erased.contains(seq)).collect();
        gone.sort_unstable();
        self.live.retain(|m| !self.erased.contains(&m.0));
        gone
    }

    fn expect(&self, reading: &ReadResult, wanted: impl Fn(&&(u64, i64, ChatMessage)) -> bool) {
        assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
        let expected: Vec<_> = self.live.iter().filter(wanted).collect();
        assert_eq!(reading.messages.len(), expected.len());
        for (found, (seq, at, message)) in reading.messages.iter().zip(expected) {
            assert_eq!((found.seq, found.ordered_at().as_millisecond()), (*seq, *at));
            assert!(found.message == *message);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(ChatMessage),
    AppendAll(Vec<ChatMessage>),
    Import(Vec<ChatMessage>),
    Forget(Vec<RangeInclusive<u64>>),
    SetClock(i64),
    Tail(usize),
    Seqs(RangeInclusive<u64>),
    Times(i64, i64),
    Reopen,
    Verify,
}

/// Milliseconds around the start of 2025, so close together that they are often equal.
fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => 0..200i64,
        1 => Just(-SignedDuration::from_hours(100_000).as_secs() * 1000),
        1 => Just(SignedDuration::from_hours(36).as_secs() * 1000),
    ]
    .prop_map(|offset| 1_735_689_600_000 + offset)
}

fn message() -> impl Strategy<Value = ChatMessage> {
    (moment(), 0..1_000_000i32, any::<String>(), prop::sample::select(&ChatRole::ALL[..])).prop_map(
        |(ms, nanos, text, role)| {
            let at = Timestamp::from_millisecond(ms).unwrap();
            let at = at.checked_add(SignedDuration::from_nanos(nanos.into())).unwrap();
            ChatMessage::at(role, text, at)
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let range = || (0..40u64, 0..6u64).prop_map(|(first, more)| first..=first + more);
    prop_oneof![
        6 => message().prop_map(Step::Append),
        2 => prop::collection::vec(message(), 0..5).prop_map(Step::AppendAll),
        2 => prop::collection::vec(message(), 0..5).prop_map(Step::Import),
        2 => prop::collection::vec(range(), 0..3).prop_map(Step::Forget),
        1 => moment().prop_map(Step::SetClock),
        3 => (0..30usize).prop_map(Step::Tail),
        1 => range().prop_map(Step::Seqs),
        1 => (moment(), moment()).prop_map(|(from, to)| Step::Times(from, to)),
        1 => Just(Step::Reopen),
        1 => Just(Step::Verify),
    ]
}

async fn runs_as_the_model_does(backend: &Backend, steps: Vec<Step>) {
    let moment = |ms| Timestamp::from_millisecond(ms).unwrap();
    let set = |ms| backend.clock.set(moment(ms).to_zoned(jiff::tz::TimeZone::UTC));
    set(1_735_689_600_000);
    let mut model = Model { newest: i64::MIN, ..Model::default() };
    let mut stores = [backend.open().await, backend.open().await];
    for step in steps {
        // Two stores take turns, so that each must notice the other's writes.
        stores.swap(0, 1);
        let store = &stores[0];
        let latest = backend.clock_now().checked_add(SignedDuration::from_hours(24)).unwrap();
        match step {
            Step::Append(message) => match store.append_message(message.clone()).await {
                Ok(stored) => assert_eq!(stored.seq, model.append(&message)),
                Err(Error::FromTheFuture) => assert!(message.timestamp > latest),
                Err(error) => panic!("{error}"),
            },
            Step::AppendAll(messages) => match store.append_all(messages.clone()).await {
                Ok(stored) => {
                    let expected: Vec<_> = messages.iter().map(|m| model.append(m)).collect();
                    assert_eq!(stored.iter().map(|m| m.seq).collect::<Vec<_>>(), expected);
                }
                Err(Error::FromTheFuture) => {
                    assert!(messages.iter().any(|message| message.timestamp > latest));
                }
                Err(error) => panic!("{error}"),
            },
            Step::Import(messages) => match store.import(messages.clone()).await {
                Ok(stored) => {
                    let expected: Vec<_> = messages.iter().map(|m| model.import(m)).collect();
                    assert_eq!(stored.iter().map(|m| m.seq).collect::<Vec<_>>(), expected);
                }
                Err(Error::FromTheFuture) => {
                    assert!(messages.iter().any(|message| message.timestamp > latest));
                }
                Err(error) => panic!("{error}"),
            },
            Step::Forget(ranges) => {
                let now = backend.clock_now().as_millisecond();
                let forgotten = store.forget(&ranges).await.unwrap();
                assert_eq!(forgotten.removed, model.forget(&ranges, now));
                assert!(forgotten.left.is_empty());
            }
            Step::SetClock(ms) => set(ms),
            Step::Tail(n) => {
                let oldest = model.live.len().saturating_sub(n);
                let first = model.live.get(oldest).map(|message| (message.1, message.0));
                let is_wanted = |message: &&(u64, i64, ChatMessage)| {
                    first.is_some_and(|first| (message.1, message.0) >= first)
                };
                model.expect(&store.read_tail(n).await.unwrap(), is_wanted);
            }
            Step::Seqs(range) => {
                let reading = store.read_seqs(range.clone()).await.unwrap();
                model.expect(&reading, |message| range.contains(&message.0));
            }
            Step::Times(from, to) => {
                let reading = store.read_times(moment(from)..moment(to)).await.unwrap();
                model.expect(&reading, |message| (from..to).contains(&message.1));
            }
            Step::Reopen => stores[0] = backend.open().await,
            Step::Verify => {
                let report = store.verify(|_| {}).await.unwrap();
                assert!(report.findings.is_empty(), "{:?}", report.findings);
                assert_eq!(report.messages, model.live.len());
                assert_eq!(report.last_seq, model.last_seq);
                assert_eq!(report.forgotten, model.erased.len() as u64);
            }
        }
    }
    model.expect(&backend.open().await.read_tail(usize::MAX).await.unwrap(), |_| true);
}

impl Backend {
    fn clock_now(&self) -> Timestamp {
        use crate::Clock;
        self.clock.now().timestamp()
    }
}

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_sequence_of_steps_in_memory_equals_the_model(steps in prop::collection::vec(step(), 1..40)) {
        block_on(runs_as_the_model_does(&Backend::memory(), steps.clone()));
        block_on(runs_as_the_model_does(&Backend::memory().packing(), steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_sequence_of_steps_in_a_folder_equals_the_model(steps in prop::collection::vec(step(), 1..40)) {
        block_on(runs_as_the_model_does(&Backend::folder(), steps.clone()));
        block_on(runs_as_the_model_does(&Backend::folder().packing(), steps));
    }
}
