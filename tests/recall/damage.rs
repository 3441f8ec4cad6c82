//! Segments that are damaged, missing, foreign or planted: named by a check, made again, and never believed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sottovoce::admin::RepairOptions;
use sottovoce::store::{Batch, DocumentId, FindingKind, StoreBackend};
use sottovoce::{ConversationStore, EncryptionKey, FileConversationStore, Scope};

use crate::common::block_on;
use crate::home::{Home, files, find, recall, scores};

const QUESTIONS: [&str; 2] = ["What is my dog called?", "What did you say about leek soup?"];

type Answers = Vec<Vec<(u64, u32)>>;

/// A conversation of two blocks whose index is written.
async fn indexed(dog: &str, messages: usize) -> (Home, Arc<FileConversationStore>, Answers) {
    let home = Home::new();
    let store = home.open().await;
    home.say(&store, "I have a cat, too.", "How nice.").await;
    home.say(&store, &format!("My dog is called {dog}."), "What a name!").await;
    home.chatter(&store, messages).await;
    let answers = asked(&store, true).await;
    (home, store, answers)
}

/// The answers of a new index, which is written afterwards.
async fn asked(store: &Arc<FileConversationStore>, saves: bool) -> Answers {
    let recall = recall(store);
    let mut answers = Vec::new();
    for question in QUESTIONS {
        let found = find(&recall, question, 9).await;
        assert!(found.skipped.is_empty(), "{:?}", found.skipped);
        answers.push(scores(&found));
    }
    if saves && let Err(error) = recall.save().await {
        assert!(!error.to_string().contains("Bruno"));
    }
    answers
}

/// What a check says about files among the segments.
async fn named(store: &FileConversationStore) -> Vec<(PathBuf, FindingKind)> {
    let findings = store.verify(|_| {}).await.unwrap().findings;
    findings.into_iter().map(|f| (PathBuf::from(f.file.unwrap()), f.kind)).collect()
}

fn changed(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_segment_that_is_cut_flipped_or_swapped_is_named_and_made_again() {
    block_on(async {
        let (home, _, answers) = indexed("Bruno", 1300).await;
        let [first, second] = [home.segments().join("0"), home.segments().join("1")];
        let sound = [fs::read(&first).unwrap(), fs::read(&second).unwrap()];
        let length = sound[0].len();
        let mut damages: Vec<Vec<u8>> =
            [0, 1, 40, length / 2, length - 2].map(|end| sound[0][..end].to_vec()).into();
        for at in (0..6).map(|part| part * (length - 2) / 5) {
            let mut bytes = sound[0].clone();
            bytes[at] ^= 1;
            damages.push(bytes);
        }
        damages.push(sound[1].clone());
        damages.push(vec![b'x'; 1000]);
        for (number, bytes) in damages.iter().enumerate() {
            fs::write(&first, bytes).unwrap();
            let store = home.open().await;
            let named = named(&store).await;
            assert_eq!(named.len(), 1, "{number}: {named:?}");
            assert_eq!(named[0].0, Path::new("recall/0"), "{number}");
            // A flipped bit may name another key or a newer form, which nobody may overwrite.
            let may_open_later =
                matches!(named[0].1, FindingKind::WrongKey { .. } | FindingKind::NewerFormat(_));
            assert_eq!(asked(&store, true).await, answers, "{number}");
            if may_open_later {
                assert_eq!(fs::read(&first).unwrap(), *bytes, "{number}");
                fs::remove_file(&first).unwrap();
                asked(&store, true).await;
            }
            assert!(store.verify(|_| {}).await.unwrap().findings.is_empty(), "{number}");
            assert_eq!(fs::read(&second).unwrap(), sound[1], "only what is damaged is written");
            assert_eq!(asked(&home.open().await, false).await, answers, "{number}");
        }
    });
}

#[test]
fn a_segment_under_another_key_or_of_a_newer_program_is_named_and_stays() {
    block_on(async {
        let (home, _, answers) = indexed("Bruno", 300).await;
        let other = Home::new();
        let key = EncryptionKey::from_secret("another secret of the tests").unwrap();
        let theirs = Arc::new(other.options(key).open(other.root()).await.unwrap());
        other.chatter(&theirs, 300).await;
        asked(&theirs, true).await;
        let file = home.segments().join("0");
        let newer = String::from_utf8(fs::read(&file).unwrap()).unwrap();
        let newer = newer.replacen("\"v\":1", "\"v\":99", 1);
        for bytes in [fs::read(other.segments().join("0")).unwrap(), newer.into_bytes()] {
            fs::write(&file, &bytes).unwrap();
            let store = home.open().await;
            let found = named(&store).await;
            assert!(
                matches!(
                    found.as_slice(),
                    [(_, FindingKind::WrongKey { .. } | FindingKind::NewerFormat(99))]
                ),
                "{found:?}"
            );
            assert_eq!(asked(&store, true).await, answers);
            store.repair(RepairOptions::default(), |_| {}).await.unwrap();
            let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
            store.repair(options, |_| {}).await.unwrap();
            assert_eq!(asked(&store, true).await, answers);
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
    });
}

#[test]
fn a_huge_file_a_folder_or_a_link_in_place_of_a_segment_costs_nothing() {
    block_on(async {
        let (home, _, answers) = indexed("Bruno", 300).await;
        let file = home.segments().join("0");
        let places: [&dyn Fn(); 3] = [
            &|| fs::File::create(&file).unwrap().set_len(1 << 40).unwrap(),
            &|| fs::create_dir(&file).unwrap(),
            &|| std::os::unix::fs::symlink("/dev/zero", &file).unwrap(),
        ];
        for place in places {
            let _ = fs::remove_file(&file);
            place();
            let store = home.open().await;
            let found = named(&store).await;
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(asked(&store, true).await, answers);
            let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
            store.repair(options, |_| {}).await.unwrap();
            let found = named(&store).await;
            let is_aside = |kind: &FindingKind| matches!(kind, FindingKind::Quarantined { .. });
            assert!(found.iter().all(|(_, kind)| is_aside(kind)), "{found:?}");
            assert_eq!(asked(&home.open().await, true).await, answers);
            assert!(file.is_file());
            let aside = home.segments().join("quarantine");
            fs::remove_dir_all(aside).unwrap();
        }
    });
}

#[test]
fn files_that_are_no_segments_are_named_and_left_alone() {
    block_on(async {
        let (home, store, answers) = indexed("Bruno", 300).await;
        let names = ["notes.txt", "00", "-1", "+1", "1.old", "18446744073709551616", "１"];
        for name in names {
            fs::copy(home.segments().join("0"), home.segments().join(name)).unwrap();
        }
        let found = named(&store).await;
        assert_eq!(found.len(), names.len(), "{found:?}");
        assert!(found.iter().all(|(_, kind)| *kind == FindingKind::Foreign), "{found:?}");
        assert_eq!(asked(&home.open().await, true).await, answers);
        store.forget(&[3..=3]).await.unwrap();
        assert!(!home.segments().join("0").exists());
        assert!(names.iter().all(|name| home.segments().join(name).exists()));
    });
}

#[test]
fn without_a_folder_for_segments_the_index_answers_the_same() {
    block_on(async {
        let (home, _, answers) = indexed("Bruno", 300).await;
        fs::remove_dir_all(home.segments()).unwrap();
        assert_eq!(asked(&home.open().await, true).await, answers);
        assert!(home.segments().join("0").is_file());
        fs::remove_dir_all(home.segments()).unwrap();
        fs::write(home.segments(), "a file").unwrap();
        let store = home.open().await;
        assert_eq!(asked(&store, true).await, answers);
        assert!(!named(&store).await.is_empty());
        assert_eq!(fs::read(home.segments()).unwrap(), b"a file");
    });
}

#[test]
fn a_segment_of_another_scope_does_not_open() {
    block_on(async {
        let (home, _, answers) = indexed("Bruno", 300).await;
        let office = home.open_as(Scope::Named { id: "office".into() }).await;
        home.say(&office, "My dog is called Rex.", "Good.").await;
        home.chatter(&office, 300).await;
        asked(&office, true).await;
        let theirs = home.root().join("conversations/office/recall/0");
        fs::copy(theirs, home.segments().join("0")).unwrap();
        let store = home.open().await;
        assert!(store.document(&DocumentId::Segment(0)).await.is_err());
        assert_eq!(asked(&store, false).await, answers);
    });
}

#[test]
fn a_segment_of_a_copied_store_that_went_on_otherwise_makes_no_hit_appear() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, "Good morning.", "Hello.").await;
        // The same keys, so that whatever one seals opens in the other.
        let twin = Home::new();
        let copied = Command::new("cp").arg("-r").args([home.root(), twin.root()]).status();
        assert!(copied.unwrap().success());
        home.say(&store, "I have a cat, too.", "How nice.").await;
        home.say(&store, "My dog is called Bruno.", "What a name!").await;
        home.chatter(&store, 300).await;
        let answers = asked(&store, true).await;
        let theirs = twin.open().await;
        for name in ["Rex", "Lassie", "Wuffi"] {
            twin.say(&theirs, &format!("My dog is called {name}."), "Another dog?").await;
        }
        twin.chatter(&theirs, 297).await;
        asked(&theirs, true).await;
        let planted = fs::read(twin.segments().join("0")).unwrap();
        fs::write(home.segments().join("0"), &planted).unwrap();
        let store = home.open().await;
        assert!(store.document(&DocumentId::Segment(0)).await.unwrap().is_some(), "it opens");
        assert_eq!(asked(&store, true).await, answers);
        // It was replaced, so that another process does not meet it again.
        assert_ne!(fs::read(home.segments().join("0")).unwrap(), planted);
        assert_eq!(asked(&home.open().await, false).await, answers);
    });
}

#[test]
fn a_segment_of_a_store_with_the_same_passphrase_does_not_open() {
    block_on(async {
        let (home, _, answers) = indexed("Bruno", 300).await;
        let (other, ..) = indexed("Rex", 300).await;
        fs::copy(other.segments().join("0"), home.segments().join("0")).unwrap();
        let store = home.open().await;
        assert!(store.document(&DocumentId::Segment(0)).await.is_err());
        assert_eq!(asked(&store, false).await, answers);
    });
}

async fn put(store: &FileConversationStore, block: u64, bytes: Vec<u8>) {
    let state = store.state().await.unwrap();
    let batch = Batch::new(&state).write(DocumentId::Segment(block), bytes.into());
    store.commit(batch).await.unwrap();
}

#[test]
fn a_sealed_segment_of_another_version_block_or_length_is_made_again() {
    block_on(async {
        let (home, store, answers) = indexed("Bruno", 1300).await;
        let segment = async |block| store.document(&DocumentId::Segment(block)).await.unwrap();
        let (first, second) = (segment(0).await.unwrap(), segment(1).await.unwrap());
        let with = |at: usize, byte: u8| {
            let mut bytes = first.to_vec();
            bytes[at] = byte;
            bytes
        };
        // The number that it reaches to, the length of artifacts' ids, then “SVRI” and two versions.
        assert_eq!(&first[8..16], b"\0\0\0\0SVRI");
        let wrong = [
            with(8, 32),
            with(12, b'X'),
            with(16, first[16] - 1),
            with(16, first[16] + 1),
            with(18, first[18].wrapping_add(2)),
            with(0, 255),
            with(7, 255),
            [&[0; 8], &first[8..]].concat(),
            [&first[..], b"more"].concat(),
            first[..first.len() - 1].to_vec(),
            second.to_vec(),
            first[..7].to_vec(),
            Vec::new(),
        ];
        for (number, bytes) in wrong.into_iter().enumerate() {
            put(&store, 0, bytes).await;
            assert_eq!(asked(&home.open().await, true).await, answers, "{number}");
            assert_eq!(segment(0).await.unwrap(), first, "{number}");
            assert_eq!(segment(1).await.unwrap(), second, "{number}");
        }
        put(&store, 1, first.to_vec()).await;
        assert_eq!(asked(&home.open().await, true).await, answers);
    });
}

#[test]
fn a_segment_with_a_forgotten_message_that_is_put_back_is_not_believed_and_does_not_stay() {
    block_on(async {
        let (home, store, _) = indexed("Bruno", 300).await;
        let file = home.segments().join("0");
        let backup = fs::read(&file).unwrap();
        store.forget(&[3..=3]).await.unwrap();
        let without = asked(&store, false).await;
        assert!(without.iter().flatten().all(|(seq, _)| *seq != 3));
        for forgotten in [3, 5] {
            fs::write(&file, &backup).unwrap();
            store.forget(&[forgotten..=forgotten]).await.unwrap();
            fs::write(&file, &backup).unwrap();
            let store = home.open().await;
            let found = asked(&store, true).await;
            assert!(found.iter().flatten().all(|(seq, _)| *seq != 3 && *seq != forgotten));
            let left = store.document(&DocumentId::Segment(0)).await.unwrap().unwrap();
            assert!(!left.windows(4).any(|letters| letters == b"brun"), "its words are there");
        }
        // Also when the conversation is so short that its index would not be written otherwise.
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, "My dog is called Bruno.", "Nice.").await;
        put(&store, 0, b"something with bruno in it".to_vec()).await;
        asked(&store, true).await;
        let left = store.document(&DocumentId::Segment(0)).await.unwrap().unwrap();
        assert!(left.windows(4).any(|letters| letters == b"SVRI"));
        changed(&home.segments().join("0"), |bytes| bytes.truncate(9));
        asked(&home.open().await, true).await;
        assert!(named(&store).await.is_empty());
        assert_eq!(files(&home.segments()).len(), 1);
    });
}
