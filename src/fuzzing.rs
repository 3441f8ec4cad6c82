//! Entry points for fuzzing: untrusted bytes, and the properties that must hold for them. The tests replay the saved
//! inputs.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "it is there to fail")]

use std::sync::Arc;

use crate::crypto::{AssociatedData, EncryptionKey, Envelope, Scratch, SealingKey, line};
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::scope::Scope;
use crate::store::care::verify::verify;
use crate::store::folder::keyring::{KeyLookup, Keyring};
use crate::store::folder::pack::check::PackAudit;
use crate::store::folder::pack::pack_lines::{PackLines, ReversePackLines, find};
use crate::store::folder::pack::{Line, OpenedPack, Pack};
use crate::store::folder::{Folder, HeadState};
use crate::store::read::reverse_scan::{NextRecord, ReverseScan};
use crate::store::read::tail::Tail;
use crate::store::record::encoding::{decode, encode, object};
use crate::store::record::head::Head;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::persona::in_force;
use crate::store::record::seq_set::forget_record::ForgetRecord;
use crate::store::write::pack_rewrite::merge;
use crate::store::{ConversationStore, Profile, StoreOptions, scopes};
use crate::transfer::import::{Backup, OpenStore};

/// The secret of the saved inputs. Some of them open with it.
const SECRET: &str = "test key, not secret";
const VAULT: &[u8] = include_bytes!("../tests/fixtures/store-v1/vault");

fn key() -> Arc<EncryptionKey> {
    Arc::new(EncryptionKey::from_secret(SECRET).unwrap())
}

/// A folder in memory with these files.
fn folder(files: &[(&str, &[u8])]) -> Folder {
    let directory = Arc::new(MemoryDirectory::default());
    for (name, bytes) in files {
        match name.split_once('/') {
            Some((folder, name)) => directory.folder(folder).create(name, bytes).unwrap(),
            None => directory.create(name, bytes).unwrap(),
        };
    }
    Folder::new(directory.clone(), directory, Scope::Default, vec![key()])
}

/// An accepted envelope is written again with the same bytes. A sealed one is accepted.
pub fn envelope(bytes: &[u8]) {
    let key = SealingKey::new(&key().unsalted(), &[7; 32]);
    let associated = AssociatedData::record(&["default"], "20250824T163625123Z_0001_user.json");
    if let Ok(envelope) = Envelope::parse(bytes) {
        let mut ciphertext = Vec::new();
        if envelope.decode_into(&mut ciphertext).is_some() {
            let written = line(envelope.key_id, &envelope.iv, &ciphertext, &envelope.tag);
            assert_eq!(written, bytes);
        }
        assert!(key.open(&associated, &envelope, &mut Scratch::default()).is_none());
    }
    let sealed = key.seal(&associated, bytes).unwrap();
    let (envelope, mut scratch) = (Envelope::parse(&sealed).unwrap(), Scratch::default());
    assert_eq!(**key.open(&associated, &envelope, &mut scratch).unwrap(), bytes);
}

/// Parsed names of records and packs are written as they were read, and a pack's range covers its ends.
pub fn name(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(name) = text.parse::<RecordName>() {
        assert_eq!(name.to_string(), text);
        assert_eq!(RecordName::from_stem(&name.stem()), Some(name));
        assert!(name.time.timestamp().is_some() && name.time.later(1) >= name.time);
    }
    if let Ok(name) = text.parse::<PackName>() {
        assert_eq!(name.to_string(), text);
        assert!(name.covers(name.first) && name.covers(name.last) && !name.surrounds(&name));
    }
}

/// Parses the plaintext of a head, of a forget record and of a message, and a head's file.
pub fn head(bytes: &[u8]) {
    if let Some(head) = Head::parse(bytes) {
        assert_eq!(Head::parse(&head.to_plaintext()), Some(head));
    }
    if let Some(record) = ForgetRecord::parse(bytes) {
        let written = serde_json::to_vec(&record).unwrap();
        assert_eq!(ForgetRecord::parse(&written).as_ref(), Some(&record));
        let erased = record.erased;
        assert!(erased.ranges().all(|range| erased.contains(*range.start())));
        assert!(erased.holes().all(|hole| !erased.intersects(&hole)));
        assert_eq!(erased.without(&erased).count(), 0);
    }
    for role in ["assistant", "system", "tool", "user"] {
        let name = format!("20250824T163625123Z_0001_{role}.json").parse().unwrap();
        if let Some(message) = decode(name, bytes)
            && let Ok(written) = encode(&message, bytes.len())
        {
            assert!(decode(name, &written) == Some(message));
        }
    }
    let folder = folder(&[("vault", VAULT), ("head", bytes)]);
    let (_, state) = folder.head().unwrap();
    let tail = Tail::load(&folder, 1, None).unwrap();
    assert_eq!(tail.last_seq, state.seq());
    assert!(matches!(state, HeadState::Damaged | HeadState::Known(_)));
}

/// A pack's lines are the same read from either end. In a sound pack each is found, and a tail reads all of them. A
/// folder with any pack can be read and checked.
pub fn pack(bytes: &[u8]) {
    let mut claimed = None;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b'\t').next().and_then(|n| str::from_utf8(n).ok());
        if let Some(name) = name.and_then(|name| name.parse::<RecordName>().ok())
            && !name.is_forget()
        {
            PackName::add(&mut claimed, name);
        }
    }
    let anything = "20250824T163625123Z_0001_user.20250824T163625123Z_0009_user.1-9.9.pack";
    let name = claimed.unwrap_or_else(|| anything.parse().unwrap());
    let folder = folder(&[("vault", VAULT), (&name.place(), bytes)]);

    let forwards = forwards(&folder, name);
    let mut backwards = backwards(&folder, name);
    backwards.reverse();
    assert_eq!(forwards.len(), backwards.len());
    let mut end = 0;
    for (one, other) in forwards.iter().zip(&backwards) {
        assert_eq!((&one.span, one.name, &one.bytes), (&other.span, other.name, &other.bytes));
        assert_eq!(one.span.start, end);
        end = one.span.end;
    }
    assert_eq!(end, bytes.len() as u64);

    let is_sound = PackAudit::new(&open(&folder, name)).finish_valid().unwrap();
    let names: Option<Vec<RecordName>> = forwards.iter().map(|line| line.name).collect();
    let sorted = names.filter(|names| !names.is_empty() && names.is_sorted_by(|a, b| a < b));
    assert_eq!(is_sound, sorted.is_some());
    if let Some(names) = sorted {
        let pack = open(&folder, name);
        let mut newest = ReverseScan::new(Vec::new(), &[name]);
        for (wanted, line) in names.iter().zip(&forwards).rev() {
            assert_eq!(find(&pack, *wanted).unwrap().unwrap().bytes, line.bytes);
            assert!(
                matches!(newest.next(&folder).unwrap(), NextRecord::Packed(_, n, _) if n == *wanted)
            );
        }
        assert!(matches!(newest.next(&folder).unwrap(), NextRecord::End));
        assert!(newest.findings.is_empty());
        let merged = merge(&folder, &[name]).unwrap();
        assert!(merged.is_none_or(|merged| merged == name));
    }
    let tail = Tail::load(&folder, usize::MAX, None).unwrap();
    let read = tail.messages().count();
    assert!(read <= forwards.len());
    let report = verify(&folder, &|_| {}).unwrap();
    assert!(report.messages >= read || !report.findings.is_empty());
}

fn open(folder: &Folder, name: PackName) -> Pack {
    match Pack::open(folder, name).unwrap() {
        OpenedPack::Pack(pack) => pack,
        other => panic!("{other:?}"),
    }
}

fn forwards(folder: &Folder, name: PackName) -> Vec<Line> {
    let pack = open(folder, name);
    let mut lines = PackLines::new(&pack);
    std::iter::from_fn(|| lines.next().unwrap()).collect()
}

fn backwards(folder: &Folder, name: PackName) -> Vec<Line> {
    let mut lines = ReversePackLines::new(open(folder, name));
    std::iter::from_fn(|| lines.next().unwrap()).collect()
}

/// A key list is refused, or names the key in use.
pub fn vault(bytes: &[u8]) {
    let directory = MemoryDirectory::default();
    directory.create("vault", bytes).unwrap();
    if let Ok(vault) = Keyring::read(&directory, &[key()]) {
        let vault = vault.unwrap();
        let id = vault.writer().id();
        assert!(matches!(vault.find(id), Ok(KeyLookup::Key(_))));
        assert!(str::from_utf8(bytes).unwrap().contains(id));
    }
}

/// An accepted configuration is unchanged after its settings are written and read again.
#[cfg(feature = "config")]
pub fn config(bytes: &[u8]) {
    let file = std::env::temp_dir().join(format!("sottovoce-fuzz-{}.json", std::process::id()));
    let load = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let loaded = crate::Config::load_with(Some(&file), []);
        std::fs::remove_file(&file).unwrap();
        loaded
    };
    // A descriptor would be read, and reading one of this process's own pipes would block.
    if bytes.to_ascii_lowercase().windows(5).any(|name| name == b"keyfd") {
        return;
    }
    let Ok(config) = load(bytes) else { return };
    let mut sections: serde_json::Map<String, serde_json::Value> = serde_json::Map::new();
    for setting in config.settings() {
        let (section, name) = setting.key.split_once('.').unwrap();
        if setting.origin != "default" && setting.value != "(redacted)" {
            let section = sections.entry(section).or_insert_with(|| serde_json::json!({}));
            section.as_object_mut().unwrap().insert(name.into(), setting.value.clone());
        }
    }
    let again = load(&serde_json::to_vec(&sections).unwrap()).unwrap();
    assert_eq!(again.context, config.context);
    assert_eq!(again.language_model, config.language_model);
    assert_eq!(again.personas, config.personas);
    assert_eq!(again.mcp.scopes, config.mcp.scopes);
}

/// The plaintext of a conversation's settings: accepted settings are written again with the same bytes.
pub fn profile(bytes: &[u8]) {
    let Some(profile) = object::<Profile>(bytes) else { return };
    let written = serde_json::to_vec(&profile).unwrap();
    assert!(object::<Profile>(&written).unwrap() == profile);
    assert!(in_force(&profile.presets).len() >= 6.max(profile.presets.len()));
}

/// An export is imported, completely or in part, or refused. The store can be read in every case.
pub fn backup(bytes: &[u8]) {
    let file =
        std::env::temp_dir().join(format!("sottovoce-fuzz-{}.sottovoce", std::process::id()));
    std::fs::write(&file, bytes).unwrap();
    let root = std::env::temp_dir().join(format!("sottovoce-fuzz-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let below = root.clone();
        let open: OpenStore = Box::new(move |scope| {
            let (options, below) = (StoreOptions::new(key()).scope(scope), below.clone());
            Box::pin(async move { options.open(below).await })
        });
        drop(Backup::new(&file).import(open, |_| {}, |_| {}).await);
        for scope in scopes(&root).unwrap() {
            let store = StoreOptions::new(key()).scope(scope).open(&root).await.unwrap();
            // Records that an export lists but does not hold are missing, as after an interrupted import.
            store.verify(|_| {}).await.unwrap();
            store.read_tail(usize::MAX).await.unwrap();
        }
    });
    std::fs::remove_file(&file).unwrap();
    drop(std::fs::remove_dir_all(&root));
}

#[cfg(test)]
#[test]
fn every_saved_input_still_holds() {
    type Target = (&'static str, fn(&[u8]));
    let targets: &[Target] = &[
        ("envelope", envelope),
        ("name", name),
        ("head", head),
        ("pack", pack),
        ("vault", vault),
        ("profile", profile),
        ("backup", backup),
        #[cfg(feature = "config")]
        ("config", config),
    ];
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for &(target, holds) in targets {
        let mut inputs = 0;
        for entry in std::fs::read_dir(corpus.join(target)).unwrap() {
            holds(&std::fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{target} has no saved inputs");
    }
}
