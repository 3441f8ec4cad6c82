//! Packs with kills, foreign changes and several processes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::*;
use rustix::fs::{CWD, FileType, Mode};
use sottovoce::admin::Report;
use sottovoce::store::{FindingKind, ReadResult};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope, StoreOptions};

/// How many messages one batch has: enough for a pack.
const MANY: u64 = 3;

/// Options with nearly everything in packs.
fn packing() -> StoreOptions {
    options().loose_files(1).lock_timeout(Duration::from_secs(120))
}

async fn open_packing(root: &Path) -> FileConversationStore {
    packing().open(root).await.unwrap()
}

/// A store of the messages `1` to `n`, appended one by one, nearly all of them packed.
async fn packed(root: &Path, n: u64) -> FileConversationStore {
    let store = open_packing(root).await;
    for number in 1..=n {
        store.append_message(said(number)).await.unwrap();
    }
    store
}

fn packs(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join("packs")) else { return Vec::new() };
    let mut packs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    packs.sort();
    packs
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn place_of(path: &Path) -> String {
    format!("packs/{}", name_of(path))
}

fn numbers(reading: &ReadResult) -> Vec<u64> {
    texts(reading).iter().map(|text| text.parse().unwrap()).collect()
}

async fn verify(root: &Path) -> Report {
    open(root).await.verify(|_| {}).await.unwrap()
}

/// Checks what a newly opened store reads: these numbers in this order, by every way of reading.
async fn reads(root: &Path, expected: &[u64], what: &str) -> ReadResult {
    let store = open(root).await;
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert_eq!(numbers(&reading), expected, "{what}");
    assert_eq!(numbers(&store.read_seqs(0..=u64::MAX).await.unwrap()), expected, "{what}");
    let time = said(1).timestamp;
    let later = time.checked_add(jiff::SignedDuration::from_secs(1)).unwrap();
    assert_eq!(numbers(&store.read_times(time..later).await.unwrap()), expected, "{what}");
    reading
}

// Kills

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_packs() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open_packing(&root).await;
        let there = store.read_tail(1).await.unwrap().last_seq;
        for number in there + 1..=there + 2 {
            store.append_message(said(number)).await.unwrap();
            writeln!(std::io::stdout().lock(), "@kept {number}").unwrap();
        }
    });
    writeln!(std::io::stdout().lock(), "@done").unwrap();
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_forgets_what_is_packed() {
    let Some(root) = child_folder() else { return };
    block_on(async { open_packing(&root).await.forget(&[3..=5]).await.unwrap() });
    writeln!(std::io::stdout().lock(), "@done").unwrap();
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_keeps_many_at_once() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open_packing(&root).await;
        let first = store.read_tail(1).await.unwrap().last_seq + 1;
        let stored = store.append_all((first..first + MANY).map(said).collect()).await.unwrap();
        for stored in stored {
            writeln!(std::io::stdout().lock(), "@kept {}", stored.seq).unwrap();
        }
    });
    writeln!(std::io::stdout().lock(), "@done").unwrap();
}

/// Runs a test in a child process that is killed at its system call of that kind and number. Returns the acknowledged
/// numbers, and whether it reached its end.
fn killed_at(test: &str, root: &Path, call: &str, when: usize) -> (Vec<u64>, bool) {
    let mut child = Command::new("strace")
        .args(["-f", "-qqq", "-o", "/dev/null", "-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:signal=SIGKILL:when={when}")])
        .arg(std::env::current_exe().unwrap())
        .args(child_args(test))
        .env(CHILD, root)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut kept, mut done) = (Vec::new(), false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, number)) = line.split_once("@kept ") {
            kept.push(number.trim().parse().unwrap());
        }
        done |= line.contains("@done");
    }
    child.wait().unwrap();
    (kept, done)
}

fn has_strace() -> bool {
    let has = Command::new("strace").args(["-f", "true"]).stderr(Stdio::null()).status();
    let has = has.is_ok_and(|status| status.success());
    if !has {
        eprintln!("SKIPPED: strace is not installed or not allowed");
    }
    has
}

fn copied(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(folder.path()).status();
    assert!(done.unwrap().success());
    folder
}

/// The calls that change the disk or its names.
const CALLS: [&str; 6] = ["openat", "write", "fsync", "renameat2", "unlinkat", "mkdir,mkdirat"];

#[test]
fn a_process_killed_at_each_system_call_of_packing_and_merging_loses_and_doubles_nothing() {
    if !has_strace() {
        return;
    }
    // The third message creates the first pack. The seventeenth creates the eighth, so that packs merge.
    for before in [2, 16] {
        let seed = tempfile::tempdir().unwrap();
        block_on(packed(seed.path(), before));
        for call in CALLS {
            let mut kills = 0;
            for when in 1.. {
                let folder = copied(seed.path());
                let root = folder.path();
                let (kept, done) = killed_at("a_process_that_packs", root, call, when);
                let context = format!("{call} number {when} after {before}");
                let told = kept.last().copied().unwrap_or(before);
                block_on(async {
                    let last = open(root).await.read_tail(1).await.unwrap().last_seq;
                    assert!((told..=told + 1).contains(&last), "{context}: {told} kept, {last}");
                    let all: Vec<u64> = (1..=last).collect();
                    let reading = reads(root, &all, &context).await;
                    assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
                    let report = verify(root).await;
                    assert!(report.is_sound(), "{context}: {:?}", report.findings);
                    assert_eq!(report.messages as u64, last, "{context}");
                    let next = open_packing(root).await.append_message(said(last + 1)).await;
                    assert_eq!(next.unwrap().seq, last + 1, "{context}");
                    let report = verify(root).await;
                    assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
                });
                if done {
                    break;
                }
                kills += 1;
            }
            let least = if call == "mkdir,mkdirat" { 0 } else { 2 };
            assert!(kills >= least, "{call}: {kills} kills");
        }
    }
}

#[test]
fn a_process_killed_at_each_system_call_of_keeping_many_at_once_keeps_all_of_them_or_none() {
    if !has_strace() {
        return;
    }
    // The very first messages; and the eighth pack, so that packs merge.
    for before in [0, 7 * MANY] {
        let seed = tempfile::tempdir().unwrap();
        block_on(async {
            let store = open_packing(seed.path()).await;
            for first in (1..=before).step_by(MANY as usize) {
                store.append_all((first..first + MANY).map(said).collect()).await.unwrap();
            }
        });
        for call in CALLS {
            for when in 1.. {
                let folder = copied(seed.path());
                let root = folder.path();
                let (kept, done) = killed_at("a_process_that_keeps_many_at_once", root, call, when);
                let context = format!("{call} number {when} after {before}");
                block_on(async {
                    let last = open(root).await.read_tail(1).await.unwrap().last_seq;
                    let all = last == before + MANY;
                    assert!(all || last == before && kept.is_empty(), "{context}: {last}");
                    let expected: Vec<u64> = (1..=last).collect();
                    let reading = reads(root, &expected, &context).await;
                    assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
                    let report = verify(root).await;
                    assert!(report.is_sound(), "{context}: {:?}", report.findings);
                    let next = open_packing(root).await.append_message(said(last + 1)).await;
                    assert_eq!(next.unwrap().seq, last + 1, "{context}");
                    let report = verify(root).await;
                    assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
                });
                if done {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_process_killed_at_each_system_call_of_forgetting_what_is_packed_forgets_all_or_nothing() {
    if !has_strace() {
        return;
    }
    let seed = tempfile::tempdir().unwrap();
    block_on(packed(seed.path(), 9));
    let secret = packs(seed.path())
        .iter()
        .flat_map(|pack| {
            fs::read(pack).unwrap().split(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
        })
        .find(|line| String::from_utf8_lossy(line).contains("_0004_user"))
        .unwrap();
    for call in CALLS {
        for when in 1.. {
            let folder = copied(seed.path());
            let root = folder.path();
            let (_, done) = killed_at("a_process_that_forgets_what_is_packed", root, call, when);
            let context = format!("{call} number {when}");
            block_on(async {
                let forgot = open(root).await.read_tail(9).await.unwrap().messages.len() == 6;
                assert!(forgot || !done, "{context}");
                let left: Vec<u64> = (1..=9).filter(|n| !forgot || !(3..=5).contains(n)).collect();
                reads(root, &left, &context).await;
                assert!(verify(root).await.is_sound(), "{context}");
                open_packing(root).await.append_message(said(0)).await.unwrap();
                let report = verify(root).await;
                assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
                let on_disk = snapshot(root)
                    .into_values()
                    .any(|(bytes, ..)| bytes.windows(secret.len()).any(|window| window == secret));
                assert_eq!(on_disk, !forgot, "{context}");
            });
            if done {
                break;
            }
        }
    }
}

// Foreign changes

#[tokio::test]
async fn a_pack_that_was_cut_renamed_reordered_or_added_to_is_reported_and_its_good_lines_are_read()
{
    type Change = fn(&Path, String);
    let changes: [(&str, Change); 8] = [
        ("cut", |pack, text| fs::write(pack, &text.as_bytes()[..text.len() - 9]).unwrap()),
        ("missing a line", |pack, text| {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            fs::write(pack, [&lines[..3], &lines[4..]].concat().concat()).unwrap();
        }),
        ("renamed", |pack, _| {
            let name = name_of(pack).replace("-16.16.pack", "-999.17.pack");
            fs::rename(pack, pack.with_file_name(name)).unwrap();
        }),
        ("reordered", |pack, text| {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            lines.swap(2, 5);
            fs::write(pack, lines.concat()).unwrap();
        }),
        ("foreign bytes at the end", |pack, text| fs::write(pack, text + "rubbish").unwrap()),
        ("foreign bytes at the start", |pack, text| {
            fs::write(pack, format!("rubbish\n\n\u{fffd}\n{text}")).unwrap();
        }),
        ("a line twice", |pack, text| {
            let first = text.split_inclusive('\n').next().unwrap();
            fs::write(pack, format!("{first}{text}")).unwrap();
        }),
        ("a line of another name", |pack, text| {
            fs::write(pack, text.replacen("_0004_user", "_0099_user", 1)).unwrap();
        }),
    ];
    for (what, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        packed(root, 18).await;
        let pack = packs(root).into_iter().find(|p| name_of(p).ends_with(".1-16.16.pack")).unwrap();
        change(&pack, fs::read_to_string(&pack).unwrap());
        let pack = packs(root)[0].clone();
        let before = fs::read(&pack).unwrap();
        let report = verify(root).await;
        assert!(!report.is_sound(), "{what}");
        let about = place_of(&pack);
        assert!(
            report.findings.iter().any(|f| f.file.as_ref().is_some_and(|f| f.starts_with(&about))),
            "{what}: {:?}",
            report.findings
        );
        let store = open_packing(root).await;
        let reading = store.read_tail(usize::MAX).await.unwrap();
        let there = numbers(&reading);
        assert!(there.is_sorted_by(|a, b| a < b), "{what}: {there:?}");
        assert!(there.len() >= 14 && there.ends_with(&[17, 18]), "{what}: {there:?}");
        assert!(!reading.skipped.is_empty(), "{what}");
        let ranged = numbers(&store.read_seqs(0..=99).await.unwrap());
        assert!(ranged.len() >= there.len(), "{what}: {ranged:?}");
        // Nothing changes the numbers, and nothing is deleted for being wrong.
        for number in 19..=60 {
            assert_eq!(store.append_message(said(number)).await.unwrap().seq, number, "{what}");
        }
        assert_eq!(fs::read(&pack).unwrap(), before, "{what}");
    }
}

#[tokio::test]
async fn a_pack_of_another_scope_does_not_open_there() {
    let folder = tempfile::tempdir().unwrap();
    let bob = Scope::Dm { user: "bob".into() };
    let store = packing().scope(bob.clone()).open(folder.path()).await.unwrap();
    for number in 1..=9 {
        store.append_message(said(number)).await.unwrap();
    }
    let eve = packing().scope(Scope::Dm { user: "eve".into() }).open(folder.path()).await.unwrap();
    eve.append_message(said(1)).await.unwrap();
    let bobs = packs(&folder.path().join("dms/bob"));
    let there = folder.path().join("dms/eve/packs");
    fs::create_dir(&there).unwrap();
    for pack in &bobs {
        fs::copy(pack, there.join(name_of(pack))).unwrap();
    }
    let eve = packing().scope(Scope::Dm { user: "eve".into() }).open(folder.path()).await.unwrap();
    for reading in [eve.read_tail(99).await.unwrap(), eve.read_seqs(0..=99).await.unwrap()] {
        assert_eq!(texts(&reading), ["1"]);
        assert!(kinds(&reading).contains(&&FindingKind::Unopenable), "{:?}", reading.skipped);
    }
    let report = eve.verify(|_| {}).await.unwrap();
    assert!(!report.is_sound());
    assert_eq!(report.last_seq, 1);
    assert_eq!(eve.append_message(said(2)).await.unwrap().seq, 2);
    assert_eq!(fs::read_dir(&there).unwrap().count(), bobs.len(), "nothing of it is deleted");
}

#[tokio::test]
async fn a_planted_pack_moves_neither_numbers_nor_the_tail() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    packed(root, 9).await;
    let planted = root
        .join("packs")
        .join("20250824T163625123Z_0001_user.99981231T000000000Z_999999_user.1-999999.999999.pack");
    for bytes in
        [String::new(), "{}\n".repeat(9), "20990824T163625123Z_999999_user.json\t{}\n".into()]
    {
        fs::write(&planted, bytes).unwrap();
        let store = open_packing(root).await;
        assert_eq!(numbers(&store.read_tail(3).await.unwrap()), [7, 8, 9]);
        reads(root, &(1..=9).collect::<Vec<_>>(), "planted").await;
        let report = verify(root).await;
        assert!(!report.is_sound());
        assert_eq!((report.last_seq, report.messages), (9, 9));
    }
    let stored = open_packing(root).await.append_message(said(10)).await.unwrap();
    assert_eq!(stored.seq, 10);
    assert_eq!(stored.ordered_at(), said(10).timestamp);
    assert!(planted.exists());
}

#[test]
fn a_link_or_pipe_in_place_of_a_pack_or_of_their_folder_is_refused_and_appending_goes_on() {
    within(Duration::from_secs(60), || {
        block_on(async {
            for what in ["link", "dangling", "pipe", "folder", "linked folder", "file"] {
                let folder = tempfile::tempdir().unwrap();
                let root = folder.path().join("root");
                packed(&root, 9).await;
                let outside = folder.path().join("outside");
                let pack = packs(&root)[1].clone();
                let at = if what == "linked folder" || what == "file" {
                    root.join("packs")
                } else {
                    pack
                };
                fs::rename(&at, &outside).unwrap();
                match what {
                    "link" | "linked folder" => symlink(&outside, &at).unwrap(),
                    "dangling" => symlink(folder.path().join("nowhere"), &at).unwrap(),
                    "pipe" => {
                        rustix::fs::mknodat(CWD, &at, FileType::Fifo, Mode::RUSR, 0).unwrap();
                    }
                    "folder" => fs::create_dir(&at).unwrap(),
                    _ => fs::write(&at, "").unwrap(),
                }
                let before = snapshot(&outside);
                let store = open_packing(&root).await;
                let reading = store.read_tail(99).await.unwrap();
                assert!(reading.messages.len() < 9, "{what}");
                assert_eq!(reading.messages.last().unwrap().seq, 9);
                let refused = |kind: &&FindingKind| matches!(kind, FindingKind::NotPlain(_));
                assert!(kinds(&reading).iter().any(refused), "{what}: {:?}", reading.skipped);
                assert!(!verify(&root).await.is_sound(), "{what}");
                for number in 10..=20 {
                    let stored = store.append_message(said(number)).await.unwrap();
                    assert_eq!(stored.seq, number, "{what}");
                }
                assert!(store.forget(&[10..=10]).await.is_ok(), "{what}");
                assert!(snapshot(&outside) == before, "{what}");
                assert!(!folder.path().join("nowhere").exists());
            }
        });
    });
}

#[tokio::test]
async fn a_second_name_for_a_pack_is_reported_and_survives_merging_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let store = packed(&root, 9).await;
    let outside = folder.path().join("outside");
    fs::hard_link(&packs(&root)[0], &outside).unwrap();
    let bytes = fs::read(&outside).unwrap();
    let report = verify(&root).await;
    assert!(report.findings.iter().any(|f| f.kind == FindingKind::HardLinked));
    for number in 10..=40 {
        store.append_message(said(number)).await.unwrap();
    }
    assert_eq!(fs::read(&outside).unwrap(), bytes);
    reads(&root, &(1..=40).collect::<Vec<_>>(), "linked").await;
}

#[tokio::test]
async fn a_line_too_long_to_be_a_records_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    packed(root, 9).await;
    let pack = packs(root)[1].clone();
    let text = fs::read_to_string(&pack).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let long = format!("{}{}\n", lines[0].trim_end(), "x".repeat(17 << 20));
    fs::write(&pack, format!("{}{long}{}", lines[0], lines[1..].concat())).unwrap();
    let reading = reads(root, &(1..=9).collect::<Vec<_>>(), "a long line").await;
    assert_eq!(reading.skipped.len(), 1, "{:?}", reading.skipped);
    assert!(!verify(root).await.is_sound());
}

#[tokio::test]
async fn strange_files_among_packs_are_reported_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let store = packed(root, 9).await;
    let name = name_of(&packs(root)[0]);
    let strange: [&[u8]; 5] = [
        b"\xff\xfe.pack",
        b"line\nbreak \x1b[31m.pack",
        b"20250824T163625123Z_0001_user.json",
        b"notes",
        b"99991231T235959999Z_0001_user.99991231T235959999Z_0002_user.1-2.2.pack",
    ];
    for name in strange {
        fs::write(root.join("packs").join(OsStr::from_bytes(name)), "not a pack").unwrap();
    }
    fs::create_dir(root.join("packs/below")).unwrap();
    fs::write(root.join("packs/below").join(name), "not a pack").unwrap();
    let reading = reads(root, &(1..=9).collect::<Vec<_>>(), "strange files").await;
    assert_eq!(kinds(&reading), [&FindingKind::Foreign; 6]);
    let report = verify(root).await;
    assert!(report.findings.iter().all(|f| !f.to_string().contains(char::is_control)));
    for number in 10..=40 {
        assert_eq!(store.append_message(said(number)).await.unwrap().seq, number);
    }
    store.forget(&[3..=3]).await.unwrap();
    for name in strange {
        let path = root.join("packs").join(OsStr::from_bytes(name));
        assert_eq!(fs::read(path).unwrap(), b"not a pack");
    }
    assert!(root.join("packs/below").is_dir());
}

#[tokio::test]
async fn a_whole_older_copy_that_is_put_back_is_read_as_it_was_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    packed(&root, 9).await;
    let older = copied(&root);
    let store = open_packing(&root).await;
    for number in 10..=30 {
        store.append_message(said(number)).await.unwrap();
    }
    fs::remove_dir_all(&root).unwrap();
    fs::rename(older.path(), &root).unwrap();
    // Only an inventory kept elsewhere can reveal it.
    reads(&root, &(1..=9).collect::<Vec<_>>(), "older").await;
    assert!(verify(&root).await.findings.is_empty());
    assert_eq!(open_packing(&root).await.append_message(said(10)).await.unwrap().seq, 10);
}

#[tokio::test]
async fn an_older_copy_laid_over_a_newer_folder_with_its_times_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, backup) = (folder.path().join("root"), folder.path().join("backup"));
    for before in [5, 40] {
        let store = open_packing(&root).await;
        let first = store.read_tail(1).await.unwrap().last_seq + 1;
        for number in first..=before {
            store.append_message(said(number)).await.unwrap();
        }
        let copy = |from: &Path, to: &Path| {
            let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
            assert!(status.unwrap().success());
        };
        fs::create_dir_all(&backup).unwrap();
        copy(&root, &backup);
        let reader = open_packing(&root).await;
        for number in before + 1..=before + 5 {
            store.append_message(said(number)).await.unwrap();
        }
        assert_eq!(reader.read_tail(3).await.unwrap().last_seq, before + 5);
        copy(&backup, &root);
        for (store, n) in [(&reader, 3), (&open_packing(&root).await, 1), (&store, 6)] {
            let tail = store.read_tail(n).await.unwrap();
            let seqs: Vec<u64> = tail.messages.iter().map(|message| message.seq).collect();
            assert!(seqs.into_iter().eq(before + 6 - n as u64..=before + 5));
        }
    }
}

#[tokio::test]
async fn a_pack_of_many_gigabytes_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    packed(root, 9).await;
    let planted = root
        .join("packs")
        .join("20250824T163625123Z_0001_user.99981231T000000000Z_999999_user.1-999999.999999.pack");
    fs::File::create(&planted).unwrap().set_len(1 << 40).unwrap();
    let reading = reads(root, &(1..=9).collect::<Vec<_>>(), "planted").await;
    assert!(matches!(kinds(&reading)[..], [FindingKind::NotPlain(_)]), "{:?}", reading.skipped);
    assert!(!verify(root).await.is_sound());
    let store = open_packing(root).await;
    for number in 10..=20 {
        assert_eq!(store.append_message(said(number)).await.unwrap().seq, number);
    }
    store.forget(&[3..=3]).await.unwrap();
    assert_eq!(planted.metadata().unwrap().len(), 1 << 40);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_may_open_few_files() {
    let Some(root) = child_folder() else { return };
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit { current: Some(256), maximum: Some(256) },
    )
    .unwrap();
    block_on(async {
        reads(&root, &(1..=9).collect::<Vec<_>>(), "few open files").await;
        let store = open_packing(&root).await;
        assert_eq!(numbers(&store.read_tail(3).await.unwrap()), [7, 8, 9]);
        store.append_message(said(10)).await.unwrap();
        assert!(!store.verify(|_| {}).await.unwrap().is_sound());
    });
    writeln!(std::io::stdout().lock(), "@done").unwrap();
}

#[test]
fn hundreds_of_planted_packs_exhaust_neither_open_files_nor_patience() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    block_on(packed(root, 9));
    for number in 1..=600 {
        let record = format!("99981231T000000000Z_{number:04}_user");
        let name = format!("20250824T163625123Z_0001_user.{record}.1-9999.9999.pack");
        fs::write(root.join("packs").join(name), format!("{record}.json\t{{}}\n")).unwrap();
    }
    let mut child = child("a_process_that_may_open_few_files", root);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("@done"), "{text}");
}

#[tokio::test]
async fn a_folder_of_packs_deleted_or_exchanged_while_open_is_an_error_and_not_made_again() {
    for what in ["deleted", "exchanged", "linked"] {
        let folder = tempfile::tempdir().unwrap();
        let (root, moved) = (folder.path().join("root"), folder.path().join("moved"));
        let warm = packed(&root, 9).await;
        warm.read_tail(9).await.unwrap();
        let there = root.join("packs");
        fs::rename(&there, &moved).unwrap();
        match what {
            "exchanged" => {
                let copied = Command::new("cp").arg("-a").arg(&moved).arg(&there).status();
                assert!(copied.unwrap().success());
            }
            "linked" => symlink(&moved, &there).unwrap(),
            _ => {}
        }
        let before = there.exists().then(|| snapshot(&there));
        let all = jiff::Timestamp::MIN..jiff::Timestamp::MAX;
        // Messages meanwhile are stored, in files of their own.
        for number in 10..=13 {
            assert_eq!(warm.append_message(said(number)).await.unwrap().seq, number, "{what}");
        }
        for refused in [
            warm.read_seqs(1..=9).await.map(|_| ()),
            warm.read_times(all).await.map(|_| ()),
            warm.verify(|_| {}).await.map(|_| ()),
        ] {
            assert!(matches!(refused, Err(Error::FolderReplaced { .. })), "{what}: {refused:?}");
        }
        assert!(there.exists().then(|| snapshot(&there)) == before, "{what}");
        // After it was put back, the store continues.
        fs::remove_file(&there).or_else(|_| fs::remove_dir_all(&there)).ok();
        fs::rename(&moved, &there).unwrap();
        assert_eq!(warm.append_message(said(14)).await.unwrap().seq, 14, "{what}");
        reads(&root, &(1..=14).collect::<Vec<_>>(), what).await;
        assert!(verify(&root).await.findings.is_empty(), "{what}");
    }
}

// Several processes

const EACH: u64 = 150;

#[test]
#[ignore = "another test runs it in processes of their own"]
fn a_process_that_appends_and_packs() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = packing().loose_files(3).open(&root).await.unwrap();
        for number in 0..EACH {
            store.append_message(said(number)).await.unwrap();
        }
    });
}

#[test]
fn a_reader_that_follows_four_packing_processes_sees_every_number_in_order_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    block_on(async { open(&root).await.append_message(said(0)).await.unwrap() });
    let mut writers = [(); 4].map(|()| {
        child("a_process_that_appends_and_packs", &root).stdout(Stdio::null()).spawn().unwrap()
    });
    let follow = |fresh: bool| {
        let root = root.clone();
        move || {
            block_on(async {
                let mut store = open(&root).await;
                let mut last = 0;
                let mut rounds = 0;
                while last < 4 * EACH + 1 {
                    if fresh {
                        store = open(&root).await;
                    }
                    let n = [1, 3, 40, 300][rounds % 4];
                    let reading = store.read_tail(n).await.unwrap();
                    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
                    let seqs: Vec<u64> = reading.messages.iter().map(|m| m.seq).collect();
                    let newest = *seqs.last().unwrap();
                    assert!(newest >= last, "a tail up to {newest} after one up to {last}");
                    let first = (newest + 1).saturating_sub(n as u64).max(1);
                    assert!(seqs.iter().copied().eq(first..=newest), "{n}: {seqs:?}");
                    if rounds % 8 == 7 {
                        let all = store.read_seqs(1..=last).await.unwrap();
                        assert!(all.skipped.is_empty(), "{:?}", all.skipped);
                        assert!(all.messages.iter().map(|m| m.seq).eq(1..=last));
                    }
                    last = newest;
                    rounds += 1;
                }
                rounds
            })
        }
    };
    let readers = [false, true].map(|fresh| std::thread::spawn(follow(fresh)));
    let checker = {
        let root = root.clone();
        std::thread::spawn(move || {
            block_on(async {
                let store = open(&root).await;
                loop {
                    let report = store.verify(|_| {}).await.unwrap();
                    assert!(report.is_sound(), "{:?}", report.findings);
                    if report.last_seq == 4 * EACH + 1 {
                        break;
                    }
                }
            });
        })
    };
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    for reader in readers {
        assert!(reader.join().unwrap() > 20);
    }
    checker.join().unwrap();
    block_on(async {
        let report = verify(&root).await;
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!(report.messages as u64, 4 * EACH + 1);
    });
    assert!(records(&root).len() <= 7 && packs(&root).len() < 30);
}

#[test]
#[ignore = "another test runs it in processes of its own"]
fn a_process_that_keeps_many_and_single_messages_in_turn() {
    let Some(root) = child_folder() else { return };
    let id = std::process::id();
    let mine = |n: u64| said(format!("{id} {n}"));
    block_on(async {
        let store = open_packing(&root).await;
        let mut next = 1;
        for round in 0..12 {
            // Sometimes more than one pack holds.
            let count = if round % 5 == 0 { 700 } else { 40 };
            let batch = store.append_all((next..next + count).map(mine).collect()).await.unwrap();
            assert!(batch.is_sorted_by(|a, b| a.seq < b.seq));
            next += count;
            for _ in 0..3 {
                store.append_message(mine(next)).await.unwrap();
                next += 1;
            }
        }
        writeln!(std::io::stdout().lock(), "@kept {}", next - 1).unwrap();
    });
}

#[test]
fn processes_that_keep_many_and_single_messages_at_once_lose_and_mix_up_nothing() {
    let in_memory = Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(in_memory).or_else(|_| tempfile::tempdir()).unwrap();
    let root = folder.path().join("root");
    let test = "a_process_that_keeps_many_and_single_messages_in_turn";
    let writers: Vec<_> = (0..3)
        .map(|_| child(test, &root).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
        .collect();
    let mut total = 0;
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success());
        let told = String::from_utf8(output.stdout).unwrap();
        let kept = told.lines().find_map(|line| line.split_once("@kept ")).unwrap().1;
        total += kept.trim().parse::<u64>().unwrap();
    }
    block_on(async {
        let reading = open(&root).await.read_tail(usize::MAX).await.unwrap();
        assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
        assert!(reading.messages.iter().map(|stored| stored.seq).eq(1..=total));
        // Each process's messages all exist, in the order in which it stored them.
        let mut of_process: BTreeMap<&str, u64> = BTreeMap::new();
        for text in texts(&reading) {
            let (process, number) = text.split_once(' ').unwrap();
            let last = of_process.entry(process).or_default();
            *last += 1;
            assert_eq!(number.parse(), Ok(*last));
        }
        assert_eq!(of_process.len(), 3);
        let report = verify(&root).await;
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    });
}
