//! Creating and changing keys, by processes that may be killed at any moment.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use sottovoce::admin::Rekey;
use sottovoce::store::FindingKind;
use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, EncryptionKey, Error, Scope, StoreOptions,
};

/// The variable with the old and the new key of a process that changes keys.
const KEYS: &str = "SOTTOVOCE_TEST_KEYS";
/// The variable with the number of times that the changing process is killed.
const ROUNDS: &str = "SOTTOVOCE_ROUNDS";

fn key_number(number: u64) -> EncryptionKey {
    EncryptionKey::from_secret(&format!("key number {number} of this house")).unwrap()
}

fn scopes() -> [Scope; 3] {
    [
        Scope::Default,
        Scope::Dm { user: "Bob".into() },
        Scope::Guild { guild: "1".into(), channel: "2".into(), user: "3".into() },
    ]
}

fn number_in_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{what}").unwrap();
    out.flush().unwrap();
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_appends_under_any_key_without_end() {
    let Some(root) = child_folder() else { return };
    let first = number_in_environment(KEYS).unwrap();
    block_on(async {
        let mut stores = Vec::new();
        for scope in scopes() {
            let options = StoreOptions::new(key_number(first)).also_with(key_number(first + 1));
            let options = options.lock_timeout(Duration::from_secs(60)).loose_files(8);
            stores.push(options.scope(scope).open(&root).await.unwrap());
        }
        for round in 0u64.. {
            for (at, store) in stores.iter().enumerate() {
                let text = format!("{first} {at} {round}");
                match store.append_message(said(&text)).await {
                    Ok(stored) => say(&format!("kept {at} {} {text}", stored.seq)),
                    Err(error) => say(&format!("error {error}")),
                }
            }
        }
    });
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_changes_the_key() {
    let Some(root) = child_folder() else { return };
    let first = number_in_environment(KEYS).unwrap();
    let rekey = Rekey::new(key_number(first), key_number(first + 1));
    let rekey = rekey.lock_timeout(Duration::from_secs(60));
    let rekeyed = block_on(rekey.run(root, |_| ControlFlow::Continue(()))).unwrap();
    say(&format!("done {} {:?}", rekeyed.retired.len(), rekeyed.left));
}

/// A process, and its output so far.
struct Process {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Process {
    fn start(test: &str, root: &Path, first: u64) -> Self {
        let mut child = child(test, root)
            .env(KEYS, first.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test harness may have written to the same line before.
                if let Some((_, said)) = line.split_once('@') {
                    let _ = send.send(said.to_owned());
                }
            }
        });
        Self { child, lines: receive }
    }

    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Its whole output until it ends.
    fn end(mut self) -> Vec<String> {
        let said = self.lines.iter().collect();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

/// The acknowledged messages, by scope and number.
type Kept = BTreeMap<(usize, u64), String>;

fn hear(said: Vec<String>, kept: &mut Kept) {
    for line in said {
        let words = line.strip_prefix("kept ").unwrap_or_else(|| panic!("{line}"));
        let mut words = words.splitn(3, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (at, seq) = (number(), number());
        let before = kept.insert((usize::try_from(at).unwrap(), seq), words.next().unwrap().into());
        assert_eq!(before, None, "a number was given twice");
    }
}

/// Checks that everything acknowledged is readable with this key alone.
fn check(root: &Path, key: u64, kept: &mut Kept) {
    block_on(async {
        for (at, scope) in scopes().into_iter().enumerate() {
            let options = StoreOptions::new(key_number(key)).scope(scope);
            let store = options.open(root).await.unwrap();
            let reading = store.read_tail(usize::MAX).await.unwrap();
            assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
            let there: BTreeMap<_, _> =
                reading.messages.iter().map(|m| (m.seq, &m.message.content)).collect();
            let expected = kept.range((at, 0)..(at + 1, 0));
            for ((_, seq), text) in expected {
                assert_eq!(there.get(seq), Some(&text), "scope {at}, number {seq}");
            }
            // The appending process was killed too, and may have been packing.
            let harmless = |kind: &FindingKind| {
                matches!(kind, FindingKind::Leftover | FindingKind::RedundantCopy)
            };
            let report = store.verify(|_| {}).await.unwrap();
            assert!(report.findings.iter().all(|f| harmless(&f.kind)), "{:?}", report.findings);
            // The next writer finishes interrupted work, whatever keys were changed meanwhile.
            let text = format!("{key} {at} checked");
            let stored = store.append_message(said(&text)).await.unwrap();
            kept.insert((at, stored.seq), text);
            let report = store.verify(|_| {}).await.unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        }
    });
}

#[test]
fn a_change_of_keys_killed_again_and_again_under_appends_loses_nothing_acknowledged() {
    let rounds = number_in_environment(ROUNDS).unwrap_or(12);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let mut kept = Kept::new();
    block_on(async {
        for (at, scope) in scopes().into_iter().enumerate() {
            let options = StoreOptions::new(key_number(1)).loose_files(8).scope(scope);
            let store = options.open(&root).await.unwrap();
            for number in 0..120 {
                let text = format!("0 {at} {number}");
                let stored = store.append_message(said(&text)).await.unwrap();
                kept.insert((at, stored.seq), text);
            }
        }
    });
    // A change that nobody disturbs tells when to kill the others.
    let begun = Instant::now();
    assert_eq!(Process::start("a_process_that_changes_the_key", &root, 1).end(), ["done 1 []"]);
    let whole = u64::try_from(begun.elapsed().as_micros()).unwrap();
    let (mut kills, mut midway, mut key) = (0, 0, 2);
    while kills < rounds {
        let appending =
            Process::start("a_process_that_appends_under_any_key_without_end", &root, key);
        let kid = kid_of(&std::fs::read_to_string(root.join("vault")).unwrap());
        for _ in 0..6 {
            let change = Process::start("a_process_that_changes_the_key", &root, key);
            let nap = std::collections::hash_map::RandomState::new();
            let nap = std::hash::BuildHasher::hash_one(&nap, kills) % whole;
            std::thread::sleep(Duration::from_micros(nap));
            change.kill();
            kills += 1;
            let vault = std::fs::read_to_string(root.join("vault")).unwrap();
            match vault.matches("kid").count() {
                2 => midway += 1,
                _ if kid == kid_of(&vault) => {}
                _ => break,
            }
        }
        let said = Process::start("a_process_that_changes_the_key", &root, key).end();
        // A killed process may have retired the old key before it could report that.
        assert!(said == ["done 1 []"] || said == ["done 0 []"], "key {key}: {said:?}");
        hear(appending.kill(), &mut kept);
        key += 1;
        check(&root, key, &mut kept);
        let before = snapshot(&root);
        let refused = block_on(StoreOptions::new(key_number(key - 1)).open(&root));
        assert!(matches!(refused, Err(Error::WrongKey { .. })), "{refused:?}");
        assert!(snapshot(&root) == before);
    }
    println!("{kills} kills, {midway} of them midway, {key} keys, {} messages", kept.len());
    assert!(midway * 4 > kills, "only {midway} of {kills} kills came in the middle of it");
}

/// The id of the key in use.
fn kid_of(vault: &str) -> String {
    vault.split('"').skip_while(|part| *part != "kid").nth(2).unwrap().to_owned()
}

#[test]
fn a_change_to_a_passphrase_keeps_its_salt_elsewhere_too_and_that_opens_a_store_without_its_vault()
{
    let folder = tempfile::tempdir().unwrap();
    let (root, config) = (folder.path().join("root"), folder.path().join("config"));
    let passphrase =
        || EncryptionKey::from_passphrase("a passphrase of the tests".to_owned()).unwrap();
    block_on(async {
        filled(&root, 3).await;
        let rekey = Rekey::new(key(), passphrase()).copy_salt_to(&config);
        let rekeyed = rekey.run(&root, |_| ControlFlow::Continue(())).await.unwrap();
        assert_eq!(rekeyed.retired.len(), 1);

        std::fs::remove_file(root.join("vault")).unwrap();
        let lost = StoreOptions::new(passphrase()).open(&root).await;
        assert!(matches!(lost, Err(Error::VaultMissing { .. })), "{lost:?}");
        std::fs::copy(config.join(format!("vault.{}", rekeyed.id)), root.join("vault")).unwrap();
        let store = StoreOptions::new(passphrase()).open(&root).await.unwrap();
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "3"]);
        assert_eq!(store.append_message(said(4)).await.unwrap().seq, 4);
    });
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_makes_and_replaces_a_key_file() {
    let Some(folder) = child_folder() else { return };
    let path = folder.join("config/key");
    EncryptionKey::read_or_make_file(&path).unwrap();
    say("made");
    key_number(1).replace_file(&path).unwrap();
    say("replaced");
}

#[test]
fn a_process_killed_at_each_system_call_of_making_a_key_file_leaves_a_whole_key_or_none() {
    let strace = Command::new("strace").args(["-f", "true"]).stderr(Stdio::null()).status();
    if !strace.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: strace is not installed or not allowed");
        return;
    }
    let mut kills = 0;
    for call in ["openat", "write", "fsync", "mkdir,mkdirat", "rename,renameat,renameat2"] {
        for when in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config/key");
            let output = Command::new("strace")
                .args(["-f", "-qqq", "-o", "/dev/null", "-e", &format!("trace={call}")])
                .args(["-e", &format!("inject={call}:signal=SIGKILL:when={when}")])
                .arg(std::env::current_exe().unwrap())
                .args(child_args("a_process_that_makes_and_replaces_a_key_file"))
                .env(CHILD, folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let there = EncryptionKey::read_file(&path).unwrap().and_then(|key| key.to_hex());
            assert!(
                there.is_some() || !said.contains("@made"),
                "{call} {when}: told and not there"
            );
            let replaced = key_number(1).to_hex();
            assert!(there == replaced || !said.contains("@replaced"), "{call} {when}");
            let again = EncryptionKey::read_or_make_file(&path).unwrap().to_hex();
            assert!(there.is_none() || there == again, "{call} {when}: another key was made");
            if said.contains("@replaced") {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 8, "only {kills} kills");
}

#[tokio::test]
async fn a_store_that_is_open_goes_on_under_the_new_key_of_its_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let [root, file, next] = ["store", "key", "key.new"].map(|name| folder.path().join(name));
    EncryptionKey::generate().unwrap().write_file(&file).unwrap();
    EncryptionKey::generate().unwrap().write_file(&next).unwrap();
    let key = |path: &Path| EncryptionKey::read_file(path).unwrap().unwrap();
    let options = || StoreOptions::new(key(&file)).key_file(&file).key_file(&next);
    let (open, stale) = (options().open(&root).await.unwrap(), options());
    let without = StoreOptions::new(key(&file)).open(&root).await.unwrap();
    open.append_message(said("one")).await.unwrap();
    without.read_tail(1).await.unwrap();
    // As `rekey` works: begun, with the new key in a file beside the old one, and then finished.
    let rekey = Rekey::new(key(&file), key(&next));
    rekey.run(root.clone(), |_| ControlFlow::Break(())).await.unwrap();
    open.append_message(said("two")).await.unwrap();
    let rekey = Rekey::new(key(&file), key(&next));
    rekey.run(root.clone(), |_| ControlFlow::Continue(())).await.unwrap();
    key(&next).replace_file(&file).unwrap();
    EncryptionKey::remove_file(&next).unwrap();
    open.append_message(said("three")).await.unwrap();
    let words = |reading: sottovoce::store::ReadResult| -> Vec<String> {
        assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
        reading.messages.iter().map(|stored| stored.message.content.to_string()).collect()
    };
    assert_eq!(words(open.read_tail(9).await.unwrap()), ["one", "two", "three"]);
    // A store that is opened with the options from the program's start.
    let stale = stale.open(&root).await.unwrap();
    assert_eq!(words(stale.read_tail(9).await.unwrap()), ["one", "two", "three"]);
    stale.append_message(said("four")).await.unwrap();
    // A program with its key from another source gets advice.
    let refused = without.append_message(said("five")).await.unwrap_err();
    assert!(matches!(refused, Error::KeyChanged { .. }), "{refused:?}");
    assert!(refused.help().contains("start the program again"), "{}", refused.help());
}

#[tokio::test]
async fn a_passphrase_opens_its_store_in_whichever_form_its_letters_are_typed() {
    let (composed, decomposed) = ("Schl\u{fc}ssel f\u{fc}r uns", "Schlu\u{308}ssel fu\u{308}r uns");
    let mixed = "Schl\u{fc}ssel fu\u{308}r uns";
    let key = |words: &str| EncryptionKey::from_passphrase(words.to_owned()).unwrap();
    for made in [composed, decomposed, mixed] {
        let root = tempfile::tempdir().unwrap();
        let store = StoreOptions::new(key(made)).open(root.path()).await.unwrap();
        let at = "2025-08-24T16:36:25Z".parse().unwrap();
        store.append_message(ChatMessage::at(ChatRole::User, "one", at)).await.unwrap();
        for typed in [composed, decomposed, mixed] {
            let store = StoreOptions::new(key(typed)).open(root.path()).await.unwrap();
            assert_eq!(store.read_tail(1).await.unwrap().messages.len(), 1);
        }
        let other = StoreOptions::new(key("Schlussel fur uns")).open(root.path()).await;
        assert!(matches!(other, Err(Error::WrongKey { .. })));
    }
}
