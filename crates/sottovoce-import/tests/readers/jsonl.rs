//! Imports of JSON lines that any program wrote.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::common::{open, snapshot};
use jiff::Timestamp;
use serde_json::json;
use sottovoce::import::ImportReport;
use sottovoce::{ConversationStore, Error, StoredMessage};
use sottovoce_import::{JsonLines, Reader};

fn now() -> Timestamp {
    "2025-08-24T16:36:25.123Z".parse().unwrap()
}

fn lines(text: &str) -> JsonLines {
    JsonLines::from_reader(Cursor::new(text.to_owned()))
}

async fn import(from: impl Fn() -> JsonLines, root: &Path) -> ImportReport {
    let store = open(root).await;
    let preview = from().read(|_| {}).await.unwrap().preview(&store).await.unwrap();
    let report = from().read(|_| {}).await.unwrap().import_into(&store, |_| {}).await.unwrap();
    assert_eq!(report, preview);
    report
}

async fn all(root: &Path) -> Vec<Arc<StoredMessage>> {
    open(root).await.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap().messages
}

async fn words(root: &Path) -> Vec<String> {
    all(root).await.iter().map(|stored| stored.message.content.clone()).collect()
}

/// A line with an id, and a time this many seconds after the first.
fn line(id: usize, words: &str, second: i64) -> String {
    let row = json!({"id": id, "role": "user", "content": words, "time": 1_756_000_000 + second});
    format!("{row}\n")
}

/// A file of that name.
fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn messages_take_their_places_by_their_times_and_in_one_moment_by_their_lines() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = [line(1, "c", 3), line(2, "a", 1), line(3, "b", 1)].concat();
    let path = file(folder.path(), "chat.jsonl", text);
    let source = snapshot(folder.path());
    let report = import(|| JsonLines::new(&path), root.path()).await;
    assert_eq!((report.taken, report.refused.len()), (3, 0));
    assert_eq!(words(root.path()).await, ["a", "b", "c"]);
    let stored = all(root.path()).await;
    assert_eq!(stored[0].message.metadata["messageId"], "2");
    assert!(stored[0].message.metadata["importedFrom"].starts_with("jsonl:"));
    assert_eq!(snapshot(folder.path()), source);
}

#[tokio::test]
async fn of_a_file_that_grew_or_moved_only_what_is_new_is_taken() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = file(folder.path(), "chat.jsonl", line(1, "a", 1));
    assert_eq!(import(|| JsonLines::new(&path), root.path()).await.taken, 1);
    let text = [line(1, "a", 1), line(2, "b", 2)].concat();
    let moved = file(folder.path(), "moved.jsonl", &text);
    let report = import(|| JsonLines::new(&moved), root.path()).await;
    assert_eq!((report.taken, report.already_there), (1, 1));
    assert_eq!(import(|| lines(&text), root.path()).await.taken, 0);
    // Metadata does not identify a message; its text does, even with the same id.
    let noted = text.replace(r#""role""#, r#""metadata":{"a":"b"},"role""#);
    assert_eq!(import(|| lines(&noted), root.path()).await.taken, 0);
    assert_eq!(import(|| lines(&line(2, "c", 2)), root.path()).await.taken, 1);
    open(root.path()).await.forget(&[1..=1]).await.unwrap();
    assert_eq!(import(|| lines(&text), root.path()).await.forgotten, 1);
}

#[tokio::test]
async fn lines_that_are_the_same_are_several_messages_unless_an_id_says_otherwise() {
    let root = tempfile::tempdir().unwrap();
    let text = line(1, "yes", 1).repeat(2);
    let report = import(|| lines(&text), root.path()).await;
    assert_eq!((report.taken, report.already_there), (1, 1));
    let nameless = text.replace(r#""id":1,"#, "");
    let report = import(|| lines(&nameless), root.path()).await;
    assert_eq!((report.taken, report.already_there), (2, 0));
    let report = import(|| lines(&nameless), root.path()).await;
    assert_eq!((report.taken, report.already_there), (0, 2));
}

#[tokio::test]
async fn a_line_without_a_time_is_refused_unless_somebody_says_when_it_was() {
    let root = tempfile::tempdir().unwrap();
    let text = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"ai\",\"content\":\"b\"}\n";
    let report = import(|| lines(text), root.path()).await;
    assert_eq!((report.taken, report.refused.len()), (0, 2));
    assert_eq!(report.refused[0].to_string(), "standard input#1: it has no time");

    let mixed = [&line(1, "before", 1), text].concat();
    let report = import(|| lines(&mixed).said_at(now()), root.path()).await;
    assert_eq!(report.taken, 3);
    assert_eq!(words(root.path()).await, ["before", "a", "b"]);
    let stored = all(root.path()).await;
    let before = |at: usize| now().duration_since(stored[at].message.timestamp).as_millis();
    assert_eq!((before(1), before(2)), (1, 0));
    // At another time they are the same.
    let later = now() + jiff::SignedDuration::from_hours(1);
    let more = format!("{mixed}{{\"role\":\"user\",\"content\":\"c\"}}");
    let report = import(|| lines(&more).said_at(later), root.path()).await;
    assert_eq!((report.taken, report.already_there), (1, 3));
    assert_eq!(words(root.path()).await, ["before", "a", "b", "c"]);
}

#[tokio::test]
async fn the_same_words_without_a_time_in_another_file_are_another_message() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = "{\"role\":\"user\",\"content\":\"good morning\"}\n{\"id\":1,\"role\":\"user\",\"content\":\"x\"}";
    let (monday, tuesday) =
        (file(folder.path(), "monday.jsonl", text), file(folder.path(), "tuesday.jsonl", text));
    for (path, taken) in [(&monday, 2), (&tuesday, 2), (&monday, 0)] {
        let report = import(|| JsonLines::new(path).said_at(now()), root.path()).await;
        assert_eq!(report.taken, taken);
    }
}

#[tokio::test]
async fn a_thread_is_for_lines_that_name_none_and_does_not_tell_which_message_it_is() {
    let root = tempfile::tempdir().unwrap();
    let own = line(2, "b", 2).replace(r#""role""#, r#""threadId":"own","role""#);
    let text = [line(1, "a", 1), own].concat();
    import(|| lines(&text).in_thread(Some("t".into())), root.path()).await;
    let stored = all(root.path()).await;
    let threads: Vec<_> =
        stored.iter().map(|stored| stored.message.thread_id.as_deref().unwrap()).collect();
    assert_eq!(threads, ["t", "own"]);
    assert_eq!(import(|| lines(&text), root.path()).await.taken, 0);
}

/// A change of these digests would store all earlier imports a second time.
#[tokio::test]
async fn what_tells_one_from_another_is_what_the_format_says() {
    let root = tempfile::tempdir().unwrap();
    let text = concat!(
        r#"{"id":1,"role":"human","content":"a","date":"2025-08-24T18:36:25+02:00","metadata":{"x":"y"}}"#,
        "\n",
        r#"{"role":"ai","content":"b"}"#,
    );
    import(|| lines(text).in_thread(Some("9".into())).said_at(now()), root.path()).await;
    let origins = ["67cab3a5663057ee887751904fff3102", "de2ccbf8a5ef2515b8c68c10f41f7150"];
    let mut stored = all(root.path()).await;
    stored.sort_by_key(|stored| stored.message.content.clone());
    for (stored, origin) in stored.iter().zip(origins) {
        assert_eq!(stored.message.metadata["importedFrom"], format!("jsonl:{origin}"));
    }
}

#[tokio::test]
async fn bad_lines_are_refused_by_their_numbers_and_the_others_are_taken() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    bytes.extend(line(1, "a\u{2028}b", 1).replace('\n', "\r\n").as_bytes());
    bytes.extend(b"\n\xff\n[]\nnonsense\n");
    bytes.extend(line(2, "x", 1 << 60).as_bytes());
    bytes.extend(line(3, "x", 9_000_000_000).as_bytes());
    bytes.extend(line(4, &"x".repeat(1_200_000), 1).as_bytes());
    bytes.extend(format!("{}\n", "x".repeat(17 << 20)).as_bytes());
    bytes.extend(line(5, "c", 2).as_bytes());
    bytes.extend(br#"{"role":"user","content":"cut"#);
    let path = file(folder.path(), "chat.jsonl", bytes);
    let report = import(|| JsonLines::new(&path), root.path()).await;
    assert_eq!(words(root.path()).await, ["a\u{2028}b", "c"]);
    let refused: Vec<_> =
        report.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    assert_eq!(
        refused,
        [
            ("chat.jsonl#11", "corrupt"),
            ("chat.jsonl#3", "corrupt"),
            ("chat.jsonl#4", "corrupt"),
            ("chat.jsonl#5", "corrupt"),
            ("chat.jsonl#6", "corrupt"),
            ("chat.jsonl#7", "from-the-future"),
            ("chat.jsonl#8", "too-large"),
            ("chat.jsonl#9", "corrupt"),
        ]
    );
}

#[tokio::test]
async fn progress_is_in_bytes_and_ends_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let text = (0..100).map(|at| line(at, "x", 1)).collect::<String>();
    let path = file(folder.path(), "chat.jsonl", &text);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let read = JsonLines::new(path).read(move |progress| into.lock().unwrap().push(progress));
    assert_eq!(read.await.unwrap().messages.len(), 100);
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|progress| progress.total == text.len()));
    assert!(seen.is_sorted_by_key(|progress| progress.done));
    assert_eq!(seen.last().unwrap().done, text.len());
}

/// Fails in the middle.
struct Torn(bool);

impl Read for Torn {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if std::mem::replace(&mut self.0, true) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Cursor::new(line(1, "x", 1)).read(into)
    }
}

#[tokio::test]
async fn an_input_that_cannot_be_read_to_its_end_is_an_error() {
    let torn = JsonLines::from_reader(Torn(false)).read(|_| {}).await;
    assert!(matches!(torn, Err(Error::Io { .. })));
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("absent")] {
        assert!(JsonLines::new(path).read(|_| {}).await.is_err());
    }
    let empty = JsonLines::new(file(folder.path(), "empty", "")).read(|_| {}).await.unwrap();
    assert!(empty.messages.is_empty() && empty.refused.is_empty());
}
