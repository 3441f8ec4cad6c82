//! Processes that are killed, starved or given false results by the system during an append.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::common::*;
use rustix::process::{Resource, Rlimit, setrlimit};
use sottovoce::store::{Document, FindingKind};
use sottovoce::{ConversationStore, Error, FileConversationStore};
use tempfile::TempDir;

/// The messages that a process under test tries to append.
const APPENDS: u64 = 3;

/// What a process reported before it ended: acknowledged numbers, and errors.
#[derive(Debug, Default)]
struct Told {
    kept: Vec<u64>,
    errors: Vec<String>,
    done: bool,
}

impl Told {
    fn hear(&mut self, line: &str) {
        // The test harness may have written to the same line before.
        let after = |mark| line.split_once(mark).map(|(_, rest): (&str, &str)| rest.trim());
        if let Some(seq) = after("@kept ") {
            self.kept.push(seq.parse().unwrap());
        } else if let Some(error) = after("@error ") {
            self.errors.push(error.to_owned());
        } else if after("@done").is_some() {
            self.done = true;
        }
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{what}").unwrap();
    out.flush().unwrap();
}

/// The text of each number, so that swapped messages are noticed.
fn text(seq: u64) -> String {
    format!("message number {seq}")
}

async fn append_and_tell(store: &FileConversationStore, seq: u64) {
    match store.append_message(said(text(seq))).await {
        Ok(stored) => say(&format!("kept {}", stored.seq)),
        Err(error) => {
            let shown = format!("{error:?}");
            let name = shown.split([' ', '{', '(']).next().unwrap();
            say(&format!("error {name}"));
        }
    }
}

/// Checks the folder of an ended process: everything acknowledged exists, with at most `more` beyond it and no gap,
/// and the only findings are those of an interrupted write. Then appends once more.
fn check(root: &Path, before: u64, told: &Told, more: u64, context: &str) {
    block_on(async {
        let store = options().open(root).await.unwrap();
        let reading = store.read_tail(usize::MAX).await.unwrap();
        assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
        let there = reading.messages.len() as u64;
        for (stored, seq) in reading.messages.iter().zip(1..) {
            assert_eq!(stored.seq, seq, "{context}: a gap");
            assert_eq!(stored.message.content, text(seq), "{context}");
        }
        let kept = before + told.kept.len() as u64;
        assert!(told.kept.iter().copied().eq(before + 1..=kept), "{context}: {told:?}");
        assert!(there >= kept, "{context}: {there} records, though {kept} were acknowledged");
        assert!(there <= kept + more, "{context}: {there} records, {kept} acknowledged");
        let report = store.verify(|_| {}).await.unwrap();
        let leftover = |kind: &FindingKind| *kind == FindingKind::Leftover;
        assert!(
            report.findings.iter().all(|f| leftover(&f.kind)),
            "{context}: {:?}",
            report.findings
        );
        let next = store.append_message(said(text(there + 1))).await.unwrap();
        assert_eq!(next.seq, there + 1, "{context}");
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
    });
}

fn run(mut command: Command) -> (Told, ExitStatus) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut told = Told::default();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        told.hear(&line.unwrap());
    }
    (told, child.wait().unwrap())
}

/// A folder with this many messages.
fn folder_of(messages: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    if messages > 0 {
        block_on(async {
            let store = open(folder.path()).await;
            let messages = (1..=messages).map(|seq| said(text(seq))).collect();
            store.append_all(messages).await.unwrap();
        });
    }
    folder
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_appends_without_end() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        let there = store.read_tail(usize::MAX).await.unwrap().messages.len() as u64;
        for seq in there + 1.. {
            append_and_tell(&store, seq).await;
        }
    });
}

#[test]
fn a_process_killed_at_any_moment_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut before = 0;
    for round in 0..40 {
        let mut child = child("a_process_that_appends_without_end", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = Told::default();
        // Some rounds end during the first append, others after a few, at a random moment.
        while (told.kept.len() as u64) < round % 4 {
            told.hear(&lines.next().unwrap().unwrap());
        }
        let nap = std::collections::hash_map::RandomState::new();
        let nap = std::hash::BuildHasher::hash_one(&nap, round) % 5_000;
        std::thread::sleep(Duration::from_micros(nap));
        child.kill().unwrap();
        for line in lines {
            told.hear(&line.unwrap());
        }
        child.wait().unwrap();
        assert!(told.errors.is_empty(), "{told:?}");
        check(folder.path(), before, &told, 1, &format!("round {round}"));
        before = block_on(async {
            let reading = open(folder.path()).await.read_tail(1).await.unwrap();
            reading.last_seq
        });
    }
    assert!(before > 60, "only {before} messages in 40 rounds");
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_appends_a_few() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        match options().open(&root).await {
            Ok(store) => {
                let there =
                    store.read_tail(usize::MAX).await.map_or(0, |r| r.messages.len() as u64);
                for seq in there + 1..=there + APPENDS {
                    append_and_tell(&store, seq).await;
                }
            }
            Err(error) => say(&format!("error {error:?}")),
        }
    });
    say("done");
}

fn has_strace() -> bool {
    let has = Command::new("strace").args(["-f", "true"]).stderr(Stdio::null()).status();
    let has = has.is_ok_and(|status| status.success());
    if !has {
        eprintln!("SKIPPED: strace is not installed or not allowed");
    }
    has
}

/// The test in a child process under strace, with one system call of its threads changed.
fn tampered(test: &str, root: &Path, call: &str, how: &str) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qqq", "-o", "/dev/null", "-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:{how}")])
        .arg(std::env::current_exe().unwrap())
        .args(child_args(test))
        .env(CHILD, root);
    command
}

/// The system calls of an append that change the disk or depend on it.
const CALLS: [&str; 11] = [
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "renameat2",
    "flock",
    "unlinkat",
    "mkdir,mkdirat",
    "read,pread64",
    "getdents64",
    "newfstatat,fstat,statx",
];

fn killed_at_every(call: &str, before: u64) -> usize {
    let mut kills = 0;
    for when in 1.. {
        let folder = folder_of(before);
        let how = format!("signal=SIGKILL:when={when}");
        let (told, _) = run(tampered("a_process_that_appends_a_few", folder.path(), call, &how));
        let context = format!("{call} number {when}, after {before} messages");
        assert!(told.errors.is_empty(), "{context}: {told:?}");
        check(folder.path(), before, &told, 1, &context);
        if told.done {
            break;
        }
        kills += 1;
    }
    kills
}

#[test]
fn a_process_killed_at_each_system_call_of_an_append_loses_nothing_acknowledged() {
    if !has_strace() {
        return;
    }
    let mut kills = std::collections::BTreeMap::new();
    for call in CALLS {
        // Only the first append creates the root, key list and head.
        for before in [0, 2] {
            kills.insert((call, before), killed_at_every(call, before));
        }
    }
    // Three appends make at least this many of these calls. Otherwise the test would test nothing.
    for (call, least) in
        [("write", 3), ("pwrite64", 3), ("fsync", 6), ("renameat2", 3), ("flock", 3)]
    {
        for before in [0, 2] {
            assert!(kills[&(call, before)] >= least, "{kills:?}");
        }
    }
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_forgets() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        store.forget(&[2..=3, 5..=5]).await.unwrap();
        say("kept 0");
    });
    say("done");
}

#[test]
fn a_process_killed_at_each_system_call_of_forgetting_forgets_all_or_nothing() {
    if !has_strace() {
        return;
    }
    for call in ["openat", "write", "pwrite64", "fsync", "renameat2", "unlinkat"] {
        for when in 1.. {
            let folder = folder_of(6);
            let how = format!("signal=SIGKILL:when={when}");
            let (told, _) = run(tampered("a_process_that_forgets", folder.path(), call, &how));
            let context = format!("{call} number {when}");
            block_on(async {
                let store = open(folder.path()).await;
                let seqs = async || {
                    let reading = store.read_tail(99).await.unwrap();
                    assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
                    reading.messages.iter().map(|stored| stored.seq).collect::<Vec<_>>()
                };
                let found = seqs().await;
                let forgot = found == [1, 4, 6];
                assert!(forgot || found == [1, 2, 3, 4, 5, 6], "{context}: {found:?}");
                assert!(forgot || told.kept.is_empty(), "{context}: acknowledged and not done");
                let report = store.verify(|_| {}).await.unwrap();
                assert!(report.is_sound(), "{context}: {:?}", report.findings);
                let next = store.append_message(said("next")).await.unwrap().seq;
                assert_eq!(next, if forgot { 8 } else { 7 }, "{context}");
                // The next writer finishes the interrupted work: the files are gone.
                let files = records(folder.path()).len();
                assert_eq!(files, if forgot { 5 } else { 7 }, "{context}");
                let report = store.verify(|_| {}).await.unwrap();
                assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
                assert_eq!(seqs().await.len(), if forgot { 4 } else { 7 });
            });
            if told.done {
                break;
            }
        }
    }
}

/// A document that is long enough to reveal a partial write.
fn document_of(number: u64) -> String {
    format!("{number} ").repeat(2000)
}

/// The number of the document in a folder, which must be complete; 0 if there is none.
async fn document_in(store: &FileConversationStore) -> u64 {
    let Some(bytes) = store.read_document(Document::Calibration).await.unwrap() else { return 0 };
    let text = str::from_utf8(&bytes).unwrap();
    let number = text.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(text, document_of(number));
    number
}

async fn write_document_and_tell(store: &FileConversationStore, number: u64) {
    let text = document_of(number);
    store.write_document(Document::Calibration, text.as_bytes()).await.unwrap();
    say(&format!("kept {number}"));
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_writes_two_documents() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        let there = document_in(&store).await;
        for number in there + 1..=there + 2 {
            write_document_and_tell(&store, number).await;
        }
    });
    say("done");
}

#[test]
fn a_process_killed_at_each_system_call_of_a_document_leaves_the_old_one_or_the_new_one() {
    if !has_strace() {
        return;
    }
    for call in ["openat", "write", "fsync", "rename,renameat,renameat2", "flock", "pwrite64"] {
        for before in [0, 1] {
            let mut kills = 0;
            for when in 1.. {
                let folder = folder_of(2 * before);
                let path = folder.path();
                if before > 0 {
                    let text = document_of(before);
                    block_on(async {
                        let store = open(path).await;
                        store.write_document(Document::Calibration, text.as_bytes()).await.unwrap();
                    });
                }
                let how = format!("signal=SIGKILL:when={when}");
                let test = "a_process_that_writes_two_documents";
                let (told, status) = run(tampered(test, path, call, &how));
                let context = format!("{call} number {when}, after {before} documents: {told:?}");
                assert!(told.done || status.signal().is_some(), "{context}: {status}");
                block_on(async {
                    let store = open(path).await;
                    let last = told.kept.last().copied().unwrap_or(before);
                    let found = document_in(&store).await;
                    assert!((last..=last + 1).contains(&found), "{context}: {found}");
                    let report = store.verify(|_| {}).await.unwrap();
                    let leftover = |kind: &FindingKind| *kind == FindingKind::Leftover;
                    assert!(
                        report.findings.iter().all(|f| leftover(&f.kind)),
                        "{context}: {:?}",
                        report.findings
                    );
                    store.write_document(Document::Calibration, b"9 ").await.unwrap();
                    let next = store.append_message(said("next")).await.unwrap().seq;
                    assert_eq!(next, 2 * before + 1, "{context}");
                    let report = store.verify(|_| {}).await.unwrap();
                    assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
                });
                if told.done {
                    break;
                }
                kills += 1;
            }
            // Two documents, each written, renamed under the lock, and synced with its folder.
            let least = if call == "pwrite64" { 0 } else { 2 };
            assert!(kills >= least, "{call}: {kills} kills");
        }
    }
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_writes_documents_without_end() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        for number in 1.. {
            write_document_and_tell(&store, number).await;
        }
    });
}

#[test]
fn processes_that_write_the_same_document_and_are_killed_leave_one_whole_version() {
    let folder = folder_of(3);
    let mut writers = [(); 2].map(|()| {
        let mut command = child("a_process_that_writes_documents_without_end", folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    });
    block_on(async {
        let store = open(folder.path()).await;
        for writer in &mut writers {
            let mut told = Told::default();
            for line in BufReader::new(writer.stdout.as_mut().unwrap()).lines().take(60) {
                told.hear(&line.unwrap());
                assert!(told.kept.is_empty() || document_in(&store).await > 0);
            }
            assert!(told.kept.len() > 40, "{told:?}");
        }
        for mut writer in writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
            assert!(document_in(&store).await > 0);
        }
        assert_eq!(store.append_message(said(text(4))).await.unwrap().seq, 4);
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    });
}

/// What a process reported whose fsync of that number, from 1, failed.
fn appended_with_an_fsync_failing(error: &str, when: usize) -> (TempDir, Told, String) {
    let folder = folder_of(2);
    let how = format!("error={error}:when={when}");
    let (told, status) =
        run(tampered("a_process_that_appends_a_few", folder.path(), "fsync", &how));
    let context = format!("fsync number {when}: {told:?}");
    assert!(status.success() && told.done, "{context}");
    (folder, told, context)
}

#[test]
fn an_fsync_that_fails_is_never_acknowledged_and_stops_the_writer() {
    if !has_strace() {
        return;
    }
    let mut failures = 0;
    for when in 1.. {
        let (folder, told, context) = appended_with_an_fsync_failing("EIO", when);
        if told.errors.is_empty() {
            assert_eq!(told.kept, [3, 4, 5], "{context}");
            break;
        }
        failures += 1;
        // The failed one, and every later one.
        assert_eq!(told.errors[0], "NotDurable", "{context}");
        assert!(told.errors[1..].iter().all(|error| error == "Poisoned"), "{context}");
        assert_eq!(told.kept.len() + told.errors.len(), 3, "{context}");
        check(folder.path(), 2, &told, 1, &context);
    }
    assert!(
        failures >= 6,
        "each of three appends syncs its file and its folder, not {failures} in all"
    );
}

#[test]
fn an_fsync_without_room_passes_for_a_file_that_goes_and_stops_the_writer_for_a_folder() {
    if !has_strace() {
        return;
    }
    let (mut passed, mut stopped) = (0, 0);
    for when in 1.. {
        let (folder, told, context) = appended_with_an_fsync_failing("ENOSPC", when);
        let Some((first, others)) = told.errors.split_first() else {
            assert_eq!(told.kept, [3, 4, 5], "{context}");
            break;
        };
        match first.as_str() {
            "NoSpace" => {
                passed += 1;
                assert!(others.is_empty(), "{context}");
            }
            "NotDurable" => {
                stopped += 1;
                assert!(others.iter().all(|error| error == "Poisoned"), "{context}");
                check(folder.path(), 2, &told, 1, &context);
            }
            _ => panic!("{context}"),
        }
        assert_eq!(told.kept.len() + told.errors.len(), 3, "{context}");
    }
    assert!(passed >= 3 && stopped >= 3, "{passed} of files, {stopped} of folders");
}

#[test]
fn the_first_append_of_a_process_makes_durable_what_others_left_up_to_above_the_root() {
    if !has_strace() {
        return;
    }
    let folder = folder_of(2);
    let trace = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qqq", "-y", "-e", "trace=fsync", "-o"])
        .arg(trace.path())
        .arg(std::env::current_exe().unwrap())
        .args(child_args("a_process_that_appends_a_few"))
        .env(CHILD, folder.path());
    let (told, _) = run(command);
    assert_eq!(told.kept, [3, 4, 5]);
    let trace = std::fs::read_to_string(trace.path()).unwrap();
    let of: Vec<_> = trace.lines().filter_map(|line| line.split(['<', '>']).nth(1)).collect();
    let first = of.iter().position(|path| path.contains(".tmp-")).unwrap();
    let above = folder.path().parent().unwrap();
    for level in [folder.path(), above] {
        let times = |of: &[&str]| of.iter().filter(|path| Path::new(path) == level).count();
        let (before, after) = of.split_at(first);
        assert_eq!(times(before), 1, "{}: {of:?}", level.display());
        assert!(level != above || times(after) == 0, "not for each append: {of:?}");
    }
}

#[test]
fn a_file_system_without_rename_no_replace_is_written_with_links() {
    if !has_strace() {
        return;
    }
    for error in ["EINVAL", "ENOSYS", "EOPNOTSUPP"] {
        for before in [0, 2] {
            let folder = folder_of(before);
            // A foreign file has its next name, and must stay.
            let taken =
                folder.path().join(format!("20250824T163625123Z_{:04}_user.json", before + 2));
            std::fs::write(&taken, "mine").unwrap();
            let how = format!("error={error}");
            let (told, _) =
                run(tampered("a_process_that_appends_a_few", folder.path(), "renameat2", &how));
            assert!(told.errors.is_empty(), "{error}: {told:?}");
            assert!(
                told.kept.iter().copied().eq(before + 1..=before + APPENDS),
                "{error}: {told:?}"
            );
            assert_eq!(std::fs::read(&taken).unwrap(), b"mine");
            std::fs::remove_file(taken).unwrap();
            check(folder.path(), before, &told, 0, error);
        }
    }
}

#[test]
fn an_interrupted_system_call_is_made_again() {
    if !has_strace() {
        return;
    }
    // No current file system of Linux interrupts the listing of folders.
    for call in CALLS.into_iter().filter(|call| *call != "getdents64") {
        let mut reached = 0;
        for when in 1..=12 {
            let folder = folder_of(2);
            let how = format!("error=EINTR:when={when}");
            let command = tampered("a_process_that_appends_a_few", folder.path(), call, &how);
            let (told, status) = run(command);
            // Some program loaders and runtimes do not retry, and they run before the store.
            if !status.success() && told.kept.is_empty() && told.errors.is_empty() {
                continue;
            }
            let context = format!("{call} number {when}: {told:?}");
            assert_eq!(told.kept, [3, 4, 5], "{context}");
            check(folder.path(), 2, &told, 0, &context);
            reached += 1;
        }
        assert!(reached > 5, "{call}: only {reached} of 12 runs came as far as the store");
    }
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_with_few_files() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        append_and_tell(&store, 1).await;
        // Takes every free number one by one, and gives them back from the end.
        let limit = |files| {
            setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: Some(256) })
                .unwrap();
        };
        limit(256);
        let fresh = open(&root).await;
        let mut taken = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            taken.push(file);
        }
        let mut seq = 2;
        loop {
            for store in [&store, &fresh] {
                match store.append_message(said(text(seq))).await {
                    Ok(_) => seq += 1,
                    Err(Error::Exhausted { .. }) => say("error Exhausted"),
                    Err(error) => say(&format!("error {error:?}")),
                }
                match store.read_seqs(1..=1).await {
                    Ok(reading) => assert_eq!(reading.messages.len(), 1),
                    Err(Error::Exhausted { .. }) => say("error Exhausted"),
                    Err(error) => say(&format!("error {error:?}")),
                }
            }
            if taken.pop().is_none() || taken.len() < 200 {
                break;
            }
        }
        drop(taken);
        for stored in store.read_tail(usize::MAX).await.unwrap().messages {
            say(&format!("kept {}", stored.seq));
        }
    });
    say("done");
}

#[test]
fn running_out_of_open_files_is_an_error_that_passes() {
    let folder = tempfile::tempdir().unwrap();
    let (told, status) = run(child("a_process_with_few_files", folder.path()));
    assert!(status.success() && told.done, "{told:?}");
    assert!(told.errors.len() > 3, "it never ran out: {told:?}");
    assert!(told.errors.iter().all(|error| error == "Exhausted"), "{told:?}");
    assert!(told.kept.len() > 10, "it never recovered: {told:?}");
    block_on(async {
        let store = open(folder.path()).await;
        let reading = store.read_tail(usize::MAX).await.unwrap();
        assert!(reading.messages.iter().zip(1..).all(|(stored, seq)| stored.seq == seq));
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
    });
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_with_small_files() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        append_and_tell(&store, 1).await;
        let long = said(format!("{:9000}", "long"));
        for _ in 0..2 {
            match store.append_message(long.clone()).await {
                Ok(_) => say("error none"),
                Err(error) => say(&format!("error {error:?}")),
            }
        }
        let batch = vec![said(text(2)), long, said("never")];
        match store.append_all(batch).await {
            Err(Error::Partial { stored: 1, total: 3, .. }) => say("error Partial"),
            other => say(&format!("error {other:?}")),
        }
        append_and_tell(&store, 3).await;
    });
    say("done");
}

#[test]
fn a_write_that_is_cut_short_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Files may grow to a few blocks. The signal for growing further is ignored, so that writes are short instead.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(child_args("a_process_with_small_files"))
        .env(CHILD, folder.path());
    let (told, status) = run(command);
    assert!(status.success() && told.done, "{told:?}");
    assert_eq!(told.errors.len(), 3, "{told:?}");
    assert!(told.errors[..2].iter().all(|error| error.contains("FileTooLarge")), "{told:?}");
    assert_eq!(told.errors[2], "Partial", "{told:?}");
    assert_eq!(told.kept, [1, 3]);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_str().unwrap().starts_with(".tmp")), "{names:?}");
    let told = Told { kept: vec![1, 2, 3], ..told };
    check(folder.path(), 0, &told, 0, "after short writes");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_on_a_small_disk() {
    let Some(disk) = child_folder() else { return };
    block_on(async {
        for ballast in 0..4 {
            std::fs::write(disk.join(format!("ballast-{ballast}")), [0; 8192]).unwrap();
        }
        let store = options().open(disk.join("root")).await.unwrap();
        let mut kept = 0;
        let error = loop {
            match store.append_message(said(text(kept + 1))).await {
                Ok(stored) => kept = stored.seq,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::NoSpace { .. }), "{error:?}");
        assert_eq!(store.read_tail(usize::MAX).await.unwrap().messages.len() as u64, kept);
        say(&format!("kept {kept}"));
        for ballast in 0..4 {
            std::fs::remove_file(disk.join(format!("ballast-{ballast}"))).unwrap();
        }
        let next = store.append_message(said(text(kept + 1))).await.unwrap();
        assert_eq!(next.seq, kept + 1);
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        say("done");
    });
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_packs_on_a_small_disk() {
    let Some(disk) = child_folder() else { return };
    let long = |n: u64| said(format!("{:3000}", text(n)));
    block_on(async {
        for ballast in 0..4 {
            std::fs::write(disk.join(format!("ballast-{ballast}")), [0; 8192]).unwrap();
        }
        let store = options().loose_files(1).open(disk.join("root")).await.unwrap();
        let mut kept = 0;
        // Without room for a pack, messages stay where they are. Without room for a message, it is not stored.
        let error = loop {
            match store.append_message(long(kept + 1)).await {
                Ok(stored) => kept = stored.seq,
                Err(error) => break error,
            }
            assert!(kept < 100, "so much does not fit");
        };
        assert!(matches!(error, Error::NoSpace { .. }), "{error:?}");
        let before = kept;
        match store.append_all((1..=40).map(|n| long(before + n)).collect()).await {
            Err(Error::Partial { stored, .. }) => kept += stored as u64,
            Err(Error::NoSpace { .. }) => {}
            other => panic!("{other:?}"),
        }
        for store in [store.clone(), open(&disk.join("root")).await] {
            let reading = store.read_tail(usize::MAX).await.unwrap();
            assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
            assert!(reading.messages.iter().map(|m| m.seq).eq(1..=kept), "{reading:?}");
        }
        say(&format!("kept {kept}"));
        for ballast in 0..4 {
            std::fs::remove_file(disk.join(format!("ballast-{ballast}"))).unwrap();
        }
        let next = store.append_message(long(kept + 1)).await.unwrap();
        assert_eq!(next.seq, kept + 1);
        for stored in store.read_seqs(1..=kept + 1).await.unwrap().messages {
            assert_eq!(stored.message.content.trim_end(), text(stored.seq));
        }
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!(report.messages as u64, kept + 1);
        say("done");
    });
}

#[test]
fn a_full_disk_or_inode_table_is_a_typed_error_and_writing_goes_on_after() {
    for (test, limit) in [
        ("a_process_on_a_small_disk", "size=96k"),
        ("a_process_on_a_small_disk", "nr_inodes=16"),
        ("a_process_that_packs_on_a_small_disk", "size=128k"),
        ("a_process_that_packs_on_a_small_disk", "nr_inodes=16"),
        ("a_process_that_packs_on_a_small_disk", "nr_inodes=20"),
    ] {
        let disk = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command
            .args([
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs -o \"$1\" none \"$2\" && shift 2 && exec \"$@\"",
                "sh",
                limit,
            ])
            .arg(disk.path())
            .arg(std::env::current_exe().unwrap())
            .args(child_args(test))
            .env(CHILD, disk.path());
        let probe = Command::new("unshare").args(["--mount", "true"]).output();
        if !probe.is_ok_and(|probe| probe.status.success()) {
            eprintln!("SKIPPED: small disks need the rights to mount them");
            return;
        }
        let (told, status) = run(command);
        assert!(status.success() && told.done, "{test} {limit}: {told:?}");
        assert!(told.kept[0] > 2, "{test} {limit}: {told:?}");
    }
}
