//! Hostile folders: foreign content is never returned, and sound content is never lost.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::string_slice,
    reason = "these are tests"
)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::*;
use rustix::fs::{CWD, FileType, Mode};
use sottovoce::admin::{RepairOptions, Report};
use sottovoce::store::{Document, Finding, FindingKind};
use sottovoce::{
    ConversationStore, EncryptionKey, Error, FileConversationStore, Scope, StoreOptions,
};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);

fn other_key() -> EncryptionKey {
    EncryptionKey::from_secret("some other secret of the tests").unwrap()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

async fn verify(root: &Path) -> Report {
    open(root).await.verify(|_| {}).await.unwrap()
}

fn about<'a>(findings: &'a [Finding], path: &Path) -> Vec<&'a FindingKind> {
    let name = name_of(path);
    findings.iter().filter(|f| f.file.as_deref() == Some(&name)).map(|f| &f.kind).collect()
}

fn missing(report: &Report) -> Vec<(u64, u64)> {
    let missing = report.findings.iter().filter(|f| f.kind == FindingKind::Missing);
    missing.map(|f| f.seqs.unwrap()).collect()
}

fn cut_tails(findings: &[Finding]) -> Vec<(u64, u64)> {
    let cut = findings.iter().filter(|f| f.kind == FindingKind::TailTruncated);
    cut.map(|f| f.seqs.unwrap()).collect()
}

/// A store of three messages, opened after its middle record was changed by `change`.
struct Changed {
    root: PathBuf,
    record: PathBuf,
    bytes: Vec<u8>,
    _folder: TempDir,
}

impl Changed {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        filled(&root, 3).await;
        let record = records(&root)[1].clone();
        let bytes = fs::read(&record).unwrap();
        Self { root, record, bytes, _folder: folder }
    }

    /// Checks that the changed record is skipped and reported, and that its neighbours are read.
    async fn is_noticed(&self, store: &FileConversationStore, what: &str) -> FindingKind {
        let reading = store.read_seqs(0..=9).await.unwrap();
        assert_eq!(texts(&reading), ["1", "3"], "{what}");
        let found = about(&reading.skipped, &self.record);
        assert_eq!(found.len(), 1, "{what}: {:?}", reading.skipped);
        found[0].clone()
    }
}

#[tokio::test]
async fn every_flipped_bit_of_a_record_is_noticed() {
    let changed = Changed::new().await;
    let store = open(&changed.root).await;
    for at in 0..changed.bytes.len() {
        for bit in 0..8 {
            let mut bytes = changed.bytes.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&changed.record, bytes).unwrap();
            changed.is_noticed(&store, &format!("byte {at}, bit {bit}")).await;
        }
    }
    fs::write(&changed.record, &changed.bytes).unwrap();
    assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "3"]);
}

#[tokio::test]
async fn every_cut_and_every_addition_is_noticed() {
    let changed = Changed::new().await;
    let store = open(&changed.root).await;
    for length in 0..changed.bytes.len() {
        fs::write(&changed.record, &changed.bytes[..length]).unwrap();
        let kind = changed.is_noticed(&store, &format!("cut to {length}")).await;
        assert!(matches!(kind, FindingKind::Damaged(_)), "{kind:?}");
    }
    for more in [&b"\n"[..], b" ", b"\0", b"{}", &changed.bytes] {
        fs::write(&changed.record, [&changed.bytes, more].concat()).unwrap();
        changed.is_noticed(&store, "something appended").await;
        fs::write(&changed.record, [more, &changed.bytes].concat()).unwrap();
        changed.is_noticed(&store, "something before it").await;
    }
    // A store that is opened later reports the same, in its tail and in a check.
    fs::write(&changed.record, &changed.bytes[..40]).unwrap();
    let fresh = open(&changed.root).await;
    let reading = fresh.read_tail(9).await.unwrap();
    assert_eq!(texts(&reading), ["1", "3"]);
    assert!(matches!(about(&reading.skipped, &changed.record)[..], [FindingKind::Damaged(_)]));
    let report = verify(&changed.root).await;
    assert!(!report.is_sound());
    assert!(matches!(about(&report.findings, &changed.record)[..], [FindingKind::Damaged(_)]));
    assert_eq!(missing(&report), [(2, 2)]);
    // Writing continues.
    assert_eq!(fresh.append_message(said(4)).await.unwrap().seq, 4);
}

#[tokio::test]
async fn strange_bytes_under_a_records_name_are_reported_and_never_returned() {
    let changed = Changed::new().await;
    let store = open(&changed.root).await;
    let line = String::from_utf8(changed.bytes.clone()).unwrap();
    let ciphertext_at = line.find(r#""ciphertext":""#).unwrap() + 14;
    let plain = r#"{"role":"User","content":"planted","timestampUtc":"2025-08-24T16:36:25.123Z","metadata":null}"#;
    let kid = &line[34..66];
    let loose_tag = {
        // The last character before the padding has unused bits.
        let at = line.find(r#"=="}"#).unwrap() - 1;
        let mut bytes = line.clone().into_bytes();
        bytes[at] += 1;
        String::from_utf8(bytes).unwrap()
    };
    for (what, bytes) in [
        ("plain text", plain.to_owned()),
        ("zero bytes", String::new()),
        ("deep nesting", "[".repeat(100_000)),
        ("deep nesting in an object", format!("{{\"v\":{}", "[".repeat(100_000))),
        ("deep nesting of objects", "{\"a\":".repeat(100_000)),
        ("duplicate keys", line.replacen(r#""v":1,"#, r#""v":1,"v":1,"#, 1)),
        ("duplicate tags", line.replacen(r#""}"#, r#"","tag":"AAAAAAAAAAAAAAAAAAAAAA=="}"#, 1)),
        ("an array", format!("[{}]\n", line.trim_end())),
        ("an array of values", r#"[1,"AES-256-GCM","","","",""]"#.to_owned()),
        ("a byte order mark", format!("\u{feff}{line}")),
        ("white space", line.replace(":", ": ")),
        ("white space around it", format!(" {line}")),
        ("two line ends", format!("{line}\n")),
        ("no line end", line.trim_end().to_owned()),
        ("a carriage return", line.replace('\n', "\r\n")),
        ("loose base64", loose_tag),
        (
            "base64 of the URL alphabet",
            format!("{}-_{}", &line[..ciphertext_at], &line[ciphertext_at + 2..]),
        ),
        ("no version", line.replacen(r#""v":1,"#, "", 1)),
        ("no algorithm", line.replacen(r#""alg":"AES-256-GCM","#, "", 1)),
        ("another algorithm", line.replacen("AES-256-GCM", "none", 1)),
        ("no key id", line.replacen(&format!(r#""kid":"{kid}","#), "", 1)),
        ("a key id in capitals", line.replacen(kid, &kid.to_uppercase().replace('0', "O"), 1)),
        (
            "fields in another order",
            line.replacen(r#""v":1,"alg":"AES-256-GCM","#, r#""alg":"AES-256-GCM","v":1,"#, 1),
        ),
        ("a short nonce", line.replacen(&line[line.find(r#""iv":""#).unwrap() + 6..][..4], "", 1)),
        ("a version below 1", line.replacen(r#""v":1"#, r#""v":0"#, 1)),
    ] {
        assert_ne!(bytes, line, "{what}");
        fs::write(&changed.record, &bytes).unwrap();
        match changed.is_noticed(&store, what).await {
            FindingKind::Damaged(_) => {}
            // Base64 errors show only when it is decoded.
            FindingKind::Unopenable if what.starts_with("base64") || what == "duplicate tags" => {}
            kind => panic!("{what}: {kind:?}"),
        }
    }
    for (ancestor, kind) in [
        (r#"{"alg":"AES-256-GCM","iv":"AAAAAAAAAAAAAAAA","ciphertext":"AAAA","tag":"AAAAAAAAAAAAAAAAAAAAAA=="}"#.to_owned(), FindingKind::LegacyFormat),
        (line.replacen(r#""v":1"#, r#""v":2"#, 1), FindingKind::NewerFormat(2)),
        (line.replacen(r#""v":1"#, &format!(r#""v":{}"#, u64::MAX), 1), FindingKind::NewerFormat(u64::MAX)),
        (line.replacen(kid, &"0".repeat(32), 1), FindingKind::WrongKey { found: "0".repeat(32) }),
    ] {
        fs::write(&changed.record, ancestor).unwrap();
        assert_eq!(changed.is_noticed(&store, "another format or key").await, kind);
    }
}

#[tokio::test]
async fn strange_files_with_names_of_their_own_are_reported_and_the_rest_is_readable() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    filled(&root, 3).await;
    let dropped = [
        (&b"20990101T000000000Z_0004_user.json"[..], &b"{\"role\":\"User\"}"[..]),
        (
            b"20990101T000000001Z_0005_assistant.json",
            b"{\"alg\":\"AES-256-GCM\",\"iv\":\"\",\"ciphertext\":\"\",\"tag\":\"\"}\n",
        ),
        (b"20990101T000000002Z_0006_forget.json", b"{\"erased\":[[1,3]]}"),
        (b"notes.json", b"{}"),
        (b"README", b""),
        (b"\xff\xfe_not_text.json", b"{}"),
        (b"line\nbreak \x1b[31m", b""),
    ];
    for (name, bytes) in dropped {
        fs::write(root.join(OsStr::from_bytes(name)), bytes).unwrap();
    }
    fs::create_dir(root.join("20990101T000000003Z_0007_user.json")).unwrap();
    fs::create_dir(root.join("a folder")).unwrap();

    let store = open(&root).await;
    let reading = store.read_tail(9).await.unwrap();
    assert_eq!(texts(&reading), ["1", "2", "3"]);
    let report = verify(&root).await;
    for findings in [&reading.skipped, &report.findings] {
        let of = |name: &str| {
            let found: Vec<_> =
                findings.iter().filter(|f| f.file.as_deref().unwrap().contains(name)).collect();
            assert_eq!(found.len(), 1, "{name}: {findings:?}");
            found[0].kind.clone()
        };
        assert!(matches!(of("_0004_user"), FindingKind::Damaged(_)));
        assert_eq!(of("_0005_assistant"), FindingKind::LegacyFormat);
        assert!(matches!(of("_0006_forget"), FindingKind::Damaged(_)));
        assert!(matches!(of("_0007_user"), FindingKind::NotPlain(_)));
        for foreign in ["notes.json", "README", "_not_text.json", "a folder", "break"] {
            assert_eq!(of(foreign), FindingKind::Foreign);
        }
        assert_eq!(findings.len(), 9);
        // Reports are shown on terminals.
        assert!(findings.iter().all(|f| !f.to_string().contains(char::is_control)));
    }
    assert_eq!(report.messages, 3);
    assert_eq!(report.last_seq, 3);
    // None of their numbers counts, and none of them is changed.
    assert_eq!(store.append_message(said(4)).await.unwrap().seq, 4);
    assert_eq!(store.read_tail(1).await.unwrap().messages[0].seq, 4);
    for (name, bytes) in dropped {
        assert_eq!(fs::read(root.join(OsStr::from_bytes(name))).unwrap(), bytes);
    }
}

#[tokio::test]
async fn the_wrong_key_is_an_error_and_changes_not_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    filled(&root, 3).await;
    let scope = Scope::Dm { user: "bob".into() };
    options()
        .scope(scope.clone())
        .open(&root)
        .await
        .unwrap()
        .append_message(said(1))
        .await
        .unwrap();
    let before = snapshot(&root);
    assert!(before.len() > 8);
    let vault = String::from_utf8(fs::read(root.join("vault")).unwrap()).unwrap();
    for scope in [Scope::Default, scope, Scope::Named { id: "new".into() }] {
        let refused = StoreOptions::new(other_key()).scope(scope).open(&root).await;
        let Err(Error::WrongKey { found, .. }) = refused else { panic!("{refused:?}") };
        assert!(vault.contains(&found));
    }
    assert!(snapshot(&root) == before);
    assert_eq!(texts(&open(&root).await.read_tail(9).await.unwrap()), ["1", "2", "3"]);
    assert!(snapshot(&root) == before, "reading changes nothing either");
}

#[tokio::test]
async fn a_record_in_the_wrong_place_is_passed_over_and_its_true_place_named() {
    let names = |root: &Path| records(root).iter().map(|p| name_of(p)).collect::<Vec<_>>();
    let folder = tempfile::tempdir().unwrap();
    let check = async |what: &str, expected: &[&str], change: &dyn Fn(&Path, &[String])| {
        let root = folder.path().join(what);
        filled(&root, 4).await;
        let before = names(&root);
        change(&root, &before);
        let reading = open(&root).await.read_tail(9).await.unwrap();
        assert_eq!(texts(&reading), expected, "{what}");
        assert!(!reading.skipped.is_empty(), "{what}");
        let unopenable = |f: &Finding| {
            use FindingKind::{Missing, TailTruncated, Unopenable};
            matches!(f.kind, Missing | TailTruncated | Unopenable)
        };
        assert!(reading.skipped.iter().all(unopenable), "{what}: {:?}", reading.skipped);
        let report = verify(&root).await;
        assert!(!report.is_sound(), "{what}");
        (before, report)
    };
    let kind_of = |report: &Report, name: &str| {
        let found: Vec<_> =
            report.findings.iter().filter(|f| f.file.as_deref() == Some(name)).collect();
        assert_eq!(found.len(), 1, "{:?}", report.findings);
        found[0].kind.clone()
    };
    let rename =
        |root: &Path, from: &str, to: &str| fs::rename(root.join(from), root.join(to)).unwrap();

    let (names, report) = check("role", &["1", "3", "4"], &|root, names| {
        rename(root, &names[1], &names[1].replace("user", "system"));
    })
    .await;
    assert_eq!(kind_of(&report, &names[1].replace("user", "system")), FindingKind::Unopenable);
    assert_eq!(missing(&report), [(2, 2)]);

    let (names, report) = check("forget", &["1", "3", "4"], &|root, names| {
        rename(root, &names[1], &names[1].replace("user", "forget"));
    })
    .await;
    assert_eq!(kind_of(&report, &names[1].replace("user", "forget")), FindingKind::Unopenable);

    let (names, report) = check("swapped", &["1", "4"], &|root, names| {
        rename(root, &names[1], "aside");
        rename(root, &names[2], &names[1]);
        rename(root, "aside", &names[2]);
    })
    .await;
    assert_eq!(kind_of(&report, &names[1]), FindingKind::Unopenable);
    assert_eq!(kind_of(&report, &names[2]), FindingKind::Unopenable);
    assert_eq!(missing(&report), [(2, 3)]);

    let (names, report) = check("copied", &["1", "2", "3", "4"], &|root, names| {
        fs::copy(root.join(&names[1]), root.join(names[3].replace("0004", "0005"))).unwrap();
    })
    .await;
    assert_eq!(kind_of(&report, &names[3].replace("0004", "0005")), FindingKind::Unopenable);
    assert_eq!((missing(&report), report.last_seq), (vec![], 4));

    let (names, report) = check("renumbered", &["1", "3", "4"], &|root, names| {
        rename(root, &names[1], &names[1].replace("0002", "0009"));
    })
    .await;
    assert_eq!(kind_of(&report, &names[1].replace("0002", "0009")), FindingKind::Unopenable);

    let (names, report) = check("redated", &["1", "2", "3"], &|root, names| {
        rename(root, &names[3], &names[3].replace("2025", "2024"));
    })
    .await;
    assert_eq!(kind_of(&report, &names[3].replace("2025", "2024")), FindingKind::Unopenable);
    assert_eq!(cut_tails(&report.findings), [(4, 4)]);
}

#[tokio::test]
async fn a_record_copied_to_another_scope_does_not_open_there() {
    let folder = tempfile::tempdir().unwrap();
    let bob = Scope::Dm { user: "bob".into() };
    let eve = Scope::Dm { user: "eve".into() };
    for scope in [&bob, &eve, &Scope::Default] {
        let store = options().scope(scope.clone()).open(folder.path()).await.unwrap();
        store.append_message(said(format!("{scope:?}"))).await.unwrap();
    }
    let [bobs, eves] = ["dms/bob", "dms/eve"].map(|below| folder.path().join(below));
    let record = records(&bobs).pop().unwrap();
    for (target, scope) in [(eves.as_path(), &eve), (folder.path(), &Scope::Default)] {
        // It replaces the record of the same name, together with the head.
        fs::copy(&record, target.join(name_of(&record))).unwrap();
        fs::copy(bobs.join("head"), target.join("head")).unwrap();
        let store = options().scope(scope.clone()).open(folder.path()).await.unwrap();
        let reading = store.read_tail(9).await.unwrap();
        assert!(reading.messages.is_empty());
        assert_eq!(about(&reading.skipped, &record), [&FindingKind::Unopenable]);
        assert!(kinds(&reading).contains(&&FindingKind::HeadDamaged));
        let report = store.verify(|_| {}).await.unwrap();
        assert_eq!(about(&report.findings, &record), [&FindingKind::Unopenable]);
    }
    let store = options().scope(bob).open(folder.path()).await.unwrap();
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 1);
}

async fn with_document(root: &Path, scope: Scope, bytes: &[u8]) -> FileConversationStore {
    let store = options().scope(scope).open(root).await.unwrap();
    store.append_message(said(1)).await.unwrap();
    store.write_document(Document::Calibration, bytes).await.unwrap();
    store
}

async fn document(store: &FileConversationStore) -> Result<Option<Vec<u8>>, Error> {
    let found = store.read_document(Document::Calibration).await?;
    Ok(found.map(|bytes| bytes.to_vec()))
}

#[tokio::test]
async fn every_flipped_bit_and_every_cut_of_a_document_is_an_error_and_the_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_document(folder.path(), Scope::Default, b"learned").await;
    let path = folder.path().join("calibration");
    let sound = fs::read(&path).unwrap();
    let flips = (0..sound.len() * 8).map(|at| {
        let mut bytes = sound.clone();
        bytes[at / 8] ^= 1 << (at % 8);
        bytes
    });
    let cuts = (0..sound.len()).map(|length| sound[..length].to_vec());
    for damaged in flips.chain(cuts).chain([[&sound[..], b"\n"].concat()]) {
        fs::write(&path, &damaged).unwrap();
        let refused = document(&store).await;
        let found = String::from_utf8_lossy(&damaged).into_owned();
        assert!(
            matches!(
                refused,
                Err(Error::Damaged { .. } | Error::WrongKey { .. } | Error::NewerFormat { .. })
            ),
            "{refused:?}: {found}"
        );
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    // The other messages stay readable, and a check names the file.
    assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1"]);
    let report = verify(folder.path()).await;
    assert!(matches!(about(&report.findings, &path)[..], [FindingKind::Damaged(_)]));
    assert!(!report.is_sound());
    assert_eq!((report.findings.len(), report.messages), (1, 1));
    // Nobody can read it any more, so a new one may replace it.
    store.write_document(Document::Calibration, b"anew").await.unwrap();
    assert_eq!(document(&store).await.unwrap().unwrap(), b"anew");
    assert!(verify(folder.path()).await.findings.is_empty());
}

#[tokio::test]
async fn a_document_does_not_open_in_another_scope_or_as_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let [bob, eve] = ["bob", "eve"].map(|user| Scope::Dm { user: user.into() });
    with_document(folder.path(), bob, b"bob's").await;
    with_document(folder.path(), Scope::Default, b"the house's").await;
    let eves = with_document(folder.path(), eve, b"eve's").await;
    let [bobs_folder, eves_folder] = ["dms/bob", "dms/eve"].map(|below| folder.path().join(below));
    let planted = eves_folder.join("calibration");
    for source in [
        bobs_folder.join("calibration"),
        folder.path().join("calibration"),
        eves_folder.join("head"),
        records(&eves_folder)[0].clone(),
    ] {
        fs::copy(&source, &planted).unwrap();
        let refused = document(&eves).await;
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{source:?}: {refused:?}");
        let report = eves.verify(|_| {}).await.unwrap();
        assert_eq!(about(&report.findings, &planted), [&FindingKind::Unopenable]);
    }
    // A document is not accepted as a record or as the head either.
    fs::copy(bobs_folder.join("calibration"), bobs_folder.join("head")).unwrap();
    let record = bobs_folder.join("20250824T163625123Z_0002_user.json");
    fs::copy(bobs_folder.join("calibration"), &record).unwrap();
    let bobs = options().scope(Scope::Dm { user: "bob".into() }).open(folder.path()).await.unwrap();
    let reading = bobs.read_tail(9).await.unwrap();
    assert_eq!(texts(&reading), ["1"]);
    assert_eq!(about(&reading.skipped, &record), [&FindingKind::Unopenable]);
    assert!(kinds(&reading).contains(&&FindingKind::HeadDamaged));
}

#[tokio::test]
async fn a_document_that_others_can_read_is_not_replaced_by_who_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let store = with_document(&root, Scope::Default, b"learned").await;
    let path = root.join("calibration");
    let sound = fs::read_to_string(&path).unwrap();
    for (what, bytes) in [
        ("another key's", sound.replacen(&sound[34..66], &"0".repeat(32), 1)),
        ("a newer version's", sound.replacen(r#""v":1"#, r#""v":2"#, 1)),
    ] {
        fs::write(&path, &bytes).unwrap();
        let report = verify(&root).await;
        assert!(!report.is_sound());
        let before = snapshot(&root);
        for refused in [
            document(&store).await.map(|_| ()),
            store.write_document(Document::Calibration, b"mine").await,
        ] {
            assert!(
                matches!(refused, Err(Error::WrongKey { .. } | Error::NewerFormat { .. })),
                "{what}: {refused:?}"
            );
        }
        assert!(snapshot(&root) == before, "{what}");
    }
    // Under a wrong key a store does not open. Without the key list it opens and writes nothing.
    fs::write(&path, &sound).unwrap();
    assert!(StoreOptions::new(other_key()).open(&root).await.is_err());
    fs::remove_file(root.join("vault")).unwrap();
    fs::remove_file(root.join("head")).unwrap();
    records(&root).iter().for_each(|record| fs::remove_file(record).unwrap());
    let before = snapshot(&root);
    let stranger = StoreOptions::new(other_key()).open(&root).await.unwrap();
    assert!(matches!(document(&stranger).await, Err(Error::Damaged { .. })));
    for store in [&stranger, &open(&root).await] {
        let refused = store.write_document(Document::Calibration, b"mine").await;
        assert!(matches!(refused, Err(Error::VaultMissing { .. })), "{refused:?}");
    }
    assert_eq!(document(&open(&root).await).await.unwrap().unwrap(), b"learned");
    assert!(snapshot(&root) == before);
}

#[test]
fn a_link_pipe_or_folder_in_place_of_a_document_is_refused_and_reported() {
    within(LIMIT, || {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("root");
            let store = with_document(&root, Scope::Default, b"learned").await;
            let path = root.join("calibration");
            let victim = folder.path().join("victim");
            fs::rename(&path, &victim).unwrap();
            let bytes = fs::read(&victim).unwrap();
            for what in ["a link", "a link to nothing", "a pipe", "a folder"] {
                match what {
                    "a link" => symlink(&victim, &path).unwrap(),
                    "a link to nothing" => symlink(folder.path().join("made"), &path).unwrap(),
                    "a pipe" => pipe(&path),
                    _ => fs::create_dir(&path).unwrap(),
                }
                for refused in [
                    document(&store).await.map(|_| ()),
                    store.write_document(Document::Calibration, b"mine").await,
                ] {
                    assert!(matches!(refused, Err(Error::NotPlain { .. })), "{what}: {refused:?}");
                }
                let report = verify(&root).await;
                assert!(matches!(about(&report.findings, &path)[..], [FindingKind::NotPlain(_)]));
                assert!(!report.is_sound());
                assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1"], "{what}");
                fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
            }
            assert_eq!(fs::read(&victim).unwrap(), bytes);
            assert!(!folder.path().join("made").exists());
            // The file's other name keeps its contents.
            fs::hard_link(&victim, &path).unwrap();
            store.write_document(Document::Calibration, b"mine").await.unwrap();
            assert_eq!(fs::read(&victim).unwrap(), bytes);
        });
    });
}

#[tokio::test]
async fn a_document_in_an_exchanged_folder_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let store = with_document(&root, Scope::Default, b"learned").await;
    fs::rename(&root, folder.path().join("moved")).unwrap();
    with_document(&root, Scope::Default, b"another's").await;
    let before = snapshot(folder.path());
    for refused in [
        document(&store).await.map(|_| ()),
        store.write_document(Document::Calibration, b"mine").await,
    ] {
        assert!(matches!(refused, Err(Error::FolderReplaced { .. })), "{refused:?}");
    }
    assert!(snapshot(folder.path()) == before);
}

#[tokio::test]
async fn a_file_deleted_in_the_middle_is_named_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 9).await;
    let names = records(folder.path());
    for at in [1, 4, 5] {
        fs::remove_file(&names[at]).unwrap();
    }
    let report = verify(folder.path()).await;
    assert_eq!(missing(&report), [(2, 2), (5, 6)]);
    assert_eq!((report.messages, report.last_seq), (6, 9));
    let store = open(folder.path()).await;
    assert_eq!(texts(&store.read_tail(99).await.unwrap()), ["1", "3", "4", "7", "8", "9"]);
    assert_eq!(store.append_message(said(10)).await.unwrap().seq, 10);
}

#[tokio::test]
async fn newest_files_deleted_are_reported_by_reading_and_by_checking() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 5).await;
    for record in &records(folder.path())[3..] {
        fs::remove_file(record).unwrap();
    }
    for planted in [false, true] {
        if planted {
            // A name that claims to be the newest must not hide the loss, however old its time is.
            for name in
                ["19700101T000000000Z_0005_user.json", "19700101T000000000Z_999999999_user.json"]
            {
                fs::write(folder.path().join(name), "{}").unwrap();
            }
        }
        let store = open(folder.path()).await;
        for reading in [
            store.read_tail(1).await.unwrap(),
            store.read_tail(99).await.unwrap(),
            store.read_seqs(1..=3).await.unwrap(),
        ] {
            assert_eq!(cut_tails(&reading.skipped), [(4, 5)], "planted: {planted}");
        }
        let report = verify(folder.path()).await;
        assert_eq!(cut_tails(&report.findings), [(4, 5)]);
        assert_eq!((report.last_seq, report.messages), (5, 3));
    }
    let store = open(folder.path()).await;
    assert_eq!(store.append_message(said("next")).await.unwrap().seq, 6);
    assert_eq!(missing(&verify(folder.path()).await), [(4, 5)]);
}

#[tokio::test]
async fn every_file_of_a_conversation_deleted_but_the_head_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 5).await;
    records(folder.path()).iter().for_each(|record| fs::remove_file(record).unwrap());
    let store = open(folder.path()).await;
    assert_eq!(cut_tails(&store.read_tail(9).await.unwrap().skipped), [(1, 5)]);
    assert_eq!(store.append_message(said("next")).await.unwrap().seq, 6);
}

#[tokio::test]
async fn a_lost_or_damaged_head_is_reported_until_it_is_rebuilt_on_request() {
    let folder = tempfile::tempdir().unwrap();
    for (what, damage) in [
        ("deleted", (|head| fs::remove_file(head).unwrap()) as fn(&Path)),
        ("empty", |head| fs::write(head, "").unwrap()),
        ("cut", |head| {
            let bytes = fs::read(head).unwrap();
            fs::write(head, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("flipped", |head| {
            let mut bytes = fs::read(head).unwrap();
            bytes[120] ^= 1;
            fs::write(head, bytes).unwrap();
        }),
        ("longer", |head| {
            fs::OpenOptions::new().append(true).open(head).unwrap().write_all(b"\n").unwrap()
        }),
        ("huge", |head| {
            fs::OpenOptions::new().write(true).open(head).unwrap().set_len(1 << 40).unwrap()
        }),
        ("linked", |head| {
            fs::rename(head, head.with_extension("elsewhere")).unwrap();
            symlink(head.with_extension("elsewhere"), head).unwrap();
        }),
        ("piped", |head| {
            fs::remove_file(head).unwrap();
            pipe(head);
        }),
    ] {
        let root = folder.path().join(what);
        let before = filled(&root, 3).await;
        // A store with the conversation in its cache must notice too.
        assert_eq!(texts(&before.read_tail(9).await.unwrap()).len(), 3);
        damage(&root.join("head"));
        let expected =
            if what == "deleted" { FindingKind::HeadMissing } else { FindingKind::HeadDamaged };
        for store in [&before, &open(&root).await] {
            for n in [2, 99] {
                let reading = store.read_tail(n).await.unwrap();
                assert!(kinds(&reading).contains(&&expected), "{what}: {:?}", reading.skipped);
                assert_eq!(texts(&reading), &["1", "2", "3"][3usize.saturating_sub(n)..]);
            }
            let report = store.verify(|_| {}).await.unwrap();
            assert!(report.findings.iter().any(|f| f.kind == expected), "{what}");
            assert!(!report.is_sound());
        }
        let store = open(&root).await;
        assert_eq!(store.append_message(said(4)).await.unwrap().seq, 4, "{what}");
        // Somebody must still look at it: an append does not hide it.
        assert!(kinds(&store.read_tail(9).await.unwrap()).contains(&&expected), "{what}");
        assert_eq!(before.append_message(said(5)).await.unwrap().seq, 5, "{what}");

        fs::remove_file(root.join("head.elsewhere")).ok();
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        let aside = if what == "deleted" { &[][..] } else { &["quarantine".to_owned()] };
        let files = |report: Report| report.findings.into_iter().filter_map(|f| f.file);
        assert!(files(verify(&root).await).eq(aside.iter().cloned()), "{what}");
        assert_eq!(root.join("quarantine/head").symlink_metadata().is_ok(), what != "deleted");
        for store in [&store, &before, &open(&root).await] {
            let reading = store.read_tail(9).await.unwrap();
            assert!(reading.skipped.is_empty(), "{what}: {:?}", reading.skipped);
            assert_eq!(texts(&reading), ["1", "2", "3", "4", "5"], "{what}");
        }
        assert_eq!(store.append_message(said(6)).await.unwrap().seq, 6);
        assert!(verify(&root).await.is_sound());
    }
}

#[tokio::test]
async fn an_older_head_put_back_moves_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path(), 2).await;
    let old = fs::read(folder.path().join("head")).unwrap();
    store.append_all(vec![said(3), said(4)]).await.unwrap();
    fs::write(folder.path().join("head"), old).unwrap();
    for store in [&open(folder.path()).await, &store] {
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "3", "4"]);
    }
    assert_eq!(store.append_message(said(5)).await.unwrap().seq, 5);
    assert!(verify(folder.path()).await.findings.is_empty());
}

#[tokio::test]
async fn a_planted_name_moves_neither_numbers_nor_time_nor_the_tail() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 3).await;
    let newest = records(folder.path()).pop().unwrap();
    let planted = [
        "99991231T235959999Z_999999999_user.json",
        "99991230T000000000Z_18446744073709551615_assistant.json",
        "99991230T000000000Z_18446744073709551614_forget.json",
    ]
    .map(|name| folder.path().join(name));
    for (path, bytes) in planted.iter().zip([fs::read(&newest).unwrap(), vec![], b"{}".to_vec()]) {
        fs::write(path, bytes).unwrap();
    }
    let store = open(folder.path()).await;
    let reading = store.read_tail(2).await.unwrap();
    assert_eq!(texts(&reading), ["2", "3"]);
    assert_eq!(reading.skipped.len(), 3, "{:?}", reading.skipped);
    let stored = store.append_message(said(4)).await.unwrap();
    assert_eq!(stored.seq, 4);
    assert_eq!(stored.ordered_at(), said(4).timestamp);
    assert_eq!(texts(&open(folder.path()).await.read_tail(1).await.unwrap()), ["4"]);
    let report = verify(folder.path()).await;
    assert_eq!((report.last_seq, report.messages, missing(&report)), (4, 4, vec![]));
}

#[tokio::test]
async fn a_name_that_is_taken_is_stepped_over_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 1).await;
    let taken = folder.path().join("20250824T163625123Z_0002_user.json");
    fs::write(&taken, "mine").unwrap();
    let stored = open(folder.path()).await.append_message(said(2)).await.unwrap();
    assert_eq!(stored.seq, 2);
    assert_eq!(stored.file_name(), "20250824T163625124Z_0002_user.json");
    assert_eq!(fs::read(&taken).unwrap(), b"mine");
    assert_eq!(texts(&open(folder.path()).await.read_tail(9).await.unwrap()), ["1", "2"]);
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn what_is_no_plain_file_is_refused_without_waiting_or_following() {
    within(LIMIT, || {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("root");
            filled(&root, 3).await;
            let outside = folder.path().join("outside.json");
            fs::copy(&records(&root)[0], &outside).unwrap();
            let at = |n: u8| root.join(format!("20990101T000000000Z_{n:04}_user.json"));
            symlink(&outside, at(4)).unwrap();
            symlink("/nowhere/at/all", at(5)).unwrap();
            symlink(records(&root)[0].file_name().unwrap(), at(6)).unwrap();
            pipe(&at(7));
            let socket = std::os::unix::net::UnixListener::bind(at(8)).unwrap();
            fs::create_dir(at(9)).unwrap();
            let mut special = 6;
            let zero = rustix::fs::makedev(1, 5);
            let made =
                rustix::fs::mknodat(CWD, at(10), FileType::CharacterDevice, Mode::RUSR, zero);
            if made.is_ok() {
                special += 1;
            } else {
                eprintln!("SKIPPED: no device could be made here");
            }

            let store = open(&root).await;
            for reading in
                [store.read_tail(99).await.unwrap(), store.read_seqs(0..=99).await.unwrap()]
            {
                assert_eq!(texts(&reading), ["1", "2", "3"]);
                assert_eq!(reading.skipped.len(), special, "{:?}", reading.skipped);
                assert!(kinds(&reading).iter().all(|k| matches!(k, FindingKind::NotPlain(_))));
            }
            let report = verify(&root).await;
            assert_eq!(report.findings.len(), special, "{:?}", report.findings);
            assert_eq!(store.append_message(said(4)).await.unwrap().seq, 4);
            drop(socket);
        });
    });
}

#[test]
fn a_file_of_a_terabyte_is_refused_before_it_is_read() {
    within(LIMIT, || {
        block_on(async {
            let changed = Changed::new().await;
            let store = open(&changed.root).await;
            for size in [(16 << 20) + 1, 1 << 40] {
                let file = fs::OpenOptions::new().write(true).open(&changed.record).unwrap();
                file.set_len(size).unwrap();
                let kind = changed.is_noticed(&store, "a huge file").await;
                assert!(matches!(kind, FindingKind::NotPlain(_)), "{kind:?}");
            }
            let vault =
                fs::OpenOptions::new().write(true).open(changed.root.join("vault")).unwrap();
            vault.set_len(1 << 40).unwrap();
            let refused = options().open(&changed.root).await;
            assert!(matches!(refused, Err(Error::NotPlain { .. })), "{refused:?}");
        });
    });
}

#[test]
fn a_link_or_pipe_in_place_of_root_lock_or_vault_is_refused() {
    within(LIMIT, || {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("root");
            filled(&root, 2).await;

            let linked = folder.path().join("linked");
            symlink(&root, &linked).unwrap();
            assert!(matches!(options().open(&linked).await, Err(Error::NotPlain { .. })));
            let dangling = folder.path().join("dangling");
            symlink(folder.path().join("elsewhere"), &dangling).unwrap();
            match options().open(&dangling).await {
                Err(Error::NotPlain { .. }) => {}
                other => panic!("{other:?}"),
            }
            assert!(!folder.path().join("elsewhere").exists());
            let file = folder.path().join("file");
            fs::write(&file, "").unwrap();
            assert!(matches!(options().open(&file).await, Err(Error::NotPlain { .. })));

            // A link among the folders of a scope is refused too.
            fs::create_dir(root.join("dms")).unwrap();
            symlink(folder.path(), root.join("dms/bob")).unwrap();
            let bob = options().scope(Scope::Dm { user: "bob".into() }).open(&root).await;
            assert!(matches!(bob, Err(Error::NotPlain { .. })), "{bob:?}");

            let victim = folder.path().join("victim");
            fs::write(&victim, "untouched").unwrap();
            for which in ["a link", "a dangling link", "a pipe", "a folder"] {
                let lock = root.join("lock");
                fs::remove_file(&lock).or_else(|_| fs::remove_dir(&lock)).unwrap();
                match which {
                    "a link" => symlink(&victim, &lock).unwrap(),
                    "a dangling link" => symlink(folder.path().join("elsewhere"), &lock).unwrap(),
                    "a pipe" => pipe(&lock),
                    _ => fs::create_dir(&lock).unwrap(),
                }
                let store = open(&root).await;
                let refused = store.append_message(said(3)).await;
                assert!(matches!(refused, Err(Error::NotPlain { .. })), "{which}: {refused:?}");
                assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2"], "{which}");
            }
            assert_eq!(fs::read(&victim).unwrap(), b"untouched");
            assert!(!folder.path().join("elsewhere").exists());

            for which in ["a link", "a pipe"] {
                fs::rename(root.join("vault"), folder.path().join("vault")).unwrap();
                match which {
                    "a link" => symlink(folder.path().join("vault"), root.join("vault")).unwrap(),
                    _ => pipe(&root.join("vault")),
                }
                let refused = options().open(&root).await;
                assert!(matches!(refused, Err(Error::NotPlain { .. })), "{which}: {refused:?}");
                fs::rename(folder.path().join("vault"), root.join("vault")).unwrap();
            }
        });
    });
}

#[tokio::test]
async fn a_second_name_for_a_record_or_head_is_reported_and_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    filled(&root, 2).await;
    let record = records(&root)[0].clone();
    fs::hard_link(&record, folder.path().join("outside")).unwrap();
    fs::hard_link(root.join("head"), folder.path().join("head")).unwrap();
    fs::hard_link(&record, root.join("20250824T163625123Z_0007_user.json")).unwrap();
    let head = fs::read(folder.path().join("head")).unwrap();
    let report = verify(&root).await;
    assert_eq!(about(&report.findings, &record), [&FindingKind::HardLinked]);
    let planted = root.join("20250824T163625123Z_0007_user.json");
    let found = about(&report.findings, &planted);
    assert!(found.contains(&&FindingKind::Unopenable), "{found:?}");
    let store = open(&root).await;
    assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2"]);
    assert_eq!(store.append_message(said(3)).await.unwrap().seq, 3);
    assert_eq!(fs::read(folder.path().join("head")).unwrap(), head, "another's file stays");
    assert_eq!(open(&root).await.append_message(said(4)).await.unwrap().seq, 4);
}

#[tokio::test]
async fn a_vault_of_a_newer_version_or_unknown_derivation_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 2).await;
    let path = folder.path().join("vault");
    let vault = fs::read_to_string(&path).unwrap();
    for newer in [
        vault.replacen(r#""v":1"#, r#""v":2"#, 1),
        r#"{"v":3,"anything":["else"]}"#.to_owned(),
        vault.replacen(r#""sha256""#, r#""argon2d","m":65536,"t":3,"p":1"#, 1),
    ] {
        fs::write(&path, &newer).unwrap();
        let before = snapshot(folder.path());
        let refused = options().open(folder.path()).await;
        assert!(matches!(refused, Err(Error::NewerFormat { .. })), "{newer}: {refused:?}");
        assert!(snapshot(folder.path()) == before);
    }
}

#[tokio::test]
async fn a_derivation_that_would_take_the_machine_down_or_protect_nothing_is_not_tried_out() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope::Dm { user: "bob".into() };
    options()
        .scope(scope)
        .open(folder.path())
        .await
        .unwrap()
        .append_message(said(1))
        .await
        .unwrap();
    let path = folder.path().join("vault");
    let vault = fs::read_to_string(&path).unwrap();
    let (_, entry) = vault.split_once('[').unwrap();
    let entry = entry.trim_end().trim_end_matches("]}");
    for hostile in [
        r#""argon2id","m":1048577,"t":3,"p":1"#,
        r#""argon2id","m":19455,"t":3,"p":1"#,
        r#""argon2id","m":65536,"t":17,"p":1"#,
        r#""argon2id","m":65536,"t":0,"p":1"#,
        r#""argon2id","m":65536,"t":3,"p":5"#,
        r#""argon2id","m":65536,"t":3,"p":0"#,
        r#""argon2id","m":4294967295,"t":4294967295,"p":4294967295"#,
        r#""argon2id","m":99999999999999,"t":3,"p":1"#,
        r#""argon2id","m":-1,"t":3,"p":1"#,
        r#""argon2id","m":65536,"t":3"#,
        r#""argon2id""#,
        r#""sha256","m":65536,"t":3,"p":1"#,
    ] {
        let hostile = entry.replacen(r#""sha256""#, hostile, 1);
        // An expensive derivation before it would delay the error.
        let dear = entry.replacen(r#""sha256""#, r#""argon2id","m":1048576,"t":16,"p":4"#, 1);
        for keys in [hostile.clone(), format!("{dear},{hostile}")] {
            let line = format!("{{\"v\":1,\"keys\":[{keys}]}}\n");
            fs::write(&path, &line).unwrap();
            let before = snapshot(folder.path());
            let root = folder.path().to_owned();
            let refused = within(Duration::from_secs(30), move || {
                let key = EncryptionKey::from_passphrase("any words".to_owned()).unwrap();
                block_on(StoreOptions::new(key).open(root))
            });
            assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{line}: {refused:?}");
            assert!(snapshot(folder.path()) == before);
        }
    }
    let many = [entry; 9].join(",");
    fs::write(&path, format!("{{\"v\":1,\"keys\":[{many}]}}\n")).unwrap();
    let refused = options().open(folder.path()).await;
    assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_passphrase_opens_its_store_and_a_wrong_one_touches_nothing() {
    let passphrase = |words: &str| EncryptionKey::from_passphrase(words.to_owned()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let open_with = async |key: EncryptionKey| StoreOptions::new(key).open(&root).await;
    let store = open_with(passphrase("correct horse battery staple")).await.unwrap();
    store.append_all((1..=3).map(said).collect()).await.unwrap();
    let vault = fs::read_to_string(root.join("vault")).unwrap();
    assert!(vault.contains(r#""kdf":"argon2id","m":65536,"t":3,"p":1,"salt":""#), "{vault}");

    let before = snapshot(&root);
    for wrong in ["correct horse battery stapler", "Correct horse battery staple"] {
        let refused = open_with(passphrase(wrong)).await;
        assert!(matches!(refused, Err(Error::WrongKey { .. })), "{refused:?}");
    }
    assert!(matches!(open_with(other_key()).await, Err(Error::WrongKey { .. })));
    assert!(snapshot(&root) == before);
    let store = open_with(passphrase("correct horse battery staple")).await.unwrap();
    assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "3"]);

    // Without the salt there is no key. The records must not be reported as unreadable.
    fs::remove_file(root.join("vault")).unwrap();
    let before = snapshot(&root);
    let lost = open_with(passphrase("correct horse battery staple")).await;
    assert!(matches!(lost, Err(Error::VaultMissing { .. })), "{lost:?}");
    assert!(snapshot(&root) == before);
}

#[tokio::test]
async fn a_passphrase_opens_a_store_that_was_made_with_the_same_words_as_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 2).await;
    let words = "a secret of the tests, long enough";
    let key = EncryptionKey::from_passphrase(words.to_owned()).unwrap();
    let store = StoreOptions::new(key).open(folder.path()).await.unwrap();
    assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2"]);
}

#[tokio::test]
async fn a_damaged_vault_is_an_error_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 2).await;
    let path = folder.path().join("vault");
    let vault = fs::read_to_string(&path).unwrap();
    for damaged in [
        String::new(),
        "{".to_owned(),
        "[".repeat(100_000),
        format!("{{\"v\":1,\"keys\":{}", "[".repeat(100_000)),
        format!("[{vault}]"),
        vault.replacen(r#""v":1"#, r#""v":1,"v":1"#, 1),
        vault.replacen(r#""v":1"#, r#""v":-1"#, 1),
        vault.replacen(r#""v":1,"#, "", 1),
        vault.replacen("kid", "id", 1),
        vault.replacen(r#""salt":""#, r#""salt":"AAAA"#, 1),
        r#"{"v":1,"keys":[]}"#.to_owned(),
        vault.replacen(r#""kid":""#, r#""kid":"0"#, 1),
    ] {
        assert_ne!(damaged, vault);
        fs::write(&path, &damaged).unwrap();
        let before = snapshot(folder.path());
        let refused = options().open(folder.path()).await;
        assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{damaged:.99}: {refused:?}");
        assert!(snapshot(folder.path()) == before);
    }
    fs::write(&path, &vault).unwrap();
    assert_eq!(texts(&open(folder.path()).await.read_tail(9).await.unwrap()), ["1", "2"]);
}

#[tokio::test]
async fn a_vault_missing_beside_records_stops_writing_but_not_reading() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let bob = Scope::Dm { user: "bob".into() };
    filled(&root, 3).await;
    options()
        .scope(bob.clone())
        .open(&root)
        .await
        .unwrap()
        .append_message(said("b"))
        .await
        .unwrap();
    let vault = fs::read(root.join("vault")).unwrap();
    fs::remove_file(root.join("vault")).unwrap();
    let before = snapshot(&root);
    for (scope, expected) in [
        (Scope::Default, &["1", "2", "3"][..]),
        (bob, &["b"]),
        (Scope::Named { id: "new".into() }, &[]),
    ] {
        let store = options().scope(scope.clone()).open(&root).await.unwrap();
        for refused in [
            store.append_message(said("no")).await.map(|_| ()),
            store.forget(&[1..=1]).await.map(|_| ()),
        ] {
            assert!(matches!(refused, Err(Error::VaultMissing { .. })), "{refused:?}");
        }
        let reading = store.read_tail(9).await.unwrap();
        assert_eq!((texts(&reading), reading.skipped.len()), (expected.to_vec(), 0));
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::VaultMissing));
        // Another key neither reads anything nor creates a store beside these records.
        let stranger = StoreOptions::new(other_key()).scope(scope).open(&root).await.unwrap();
        assert!(stranger.read_tail(9).await.unwrap().messages.is_empty());
        assert!(stranger.append_message(said("no")).await.is_err());
    }
    assert!(snapshot(&root) == before);
    fs::write(root.join("vault"), vault).unwrap();
    assert_eq!(open(&root).await.append_message(said(4)).await.unwrap().seq, 4);
}

#[tokio::test]
async fn stale_temporary_files_are_swept_by_the_next_append_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 2).await;
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let stale: Vec<PathBuf> = [".tmp-0123456789abcdef", ".tmp-", ".tmp-x.json"]
        .map(|name| folder.path().join(name))
        .into();
    stale.iter().for_each(|path| fs::write(path, "half a record").unwrap());
    let link = folder.path().join(".tmp-fedcba9876543210");
    symlink(&victim, &link).unwrap();
    let dangling = folder.path().join(".tmp-00000000deadbeef");
    symlink(outside.path().join("made"), &dangling).unwrap();

    let store = open(folder.path()).await;
    let reading = store.read_tail(9).await.unwrap();
    assert_eq!((texts(&reading), reading.skipped.len()), (vec!["1", "2"], 0));
    let report = store.verify(|_| {}).await.unwrap();
    assert_eq!(report.findings.len(), 5, "{:?}", report.findings);
    assert!(report.findings.iter().all(|f| f.kind == FindingKind::Leftover));
    assert!(report.is_sound());
    assert!(stale.iter().all(|path| path.exists()), "reading and checking change nothing");

    store.append_message(said(3)).await.unwrap();
    for path in stale.iter().chain([&link, &dangling]) {
        assert!(path.symlink_metadata().is_err(), "{path:?} is still there");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    assert!(!outside.path().join("made").exists());
    assert!(verify(folder.path()).await.findings.is_empty());
}

#[tokio::test]
async fn a_root_deleted_or_exchanged_while_open_is_an_error_and_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    for (what, scope) in [
        ("deleted", Scope::Default),
        ("exchanged", Scope::Default),
        ("linked", Scope::Default),
        ("deleted below", Scope::Dm { user: "bob".into() }),
        ("exchanged below", Scope::Dm { user: "bob".into() }),
    ] {
        let root = folder.path().join(what);
        let moved = folder.path().join(format!("{what}, moved"));
        let warm = options().scope(scope.clone()).open(&root).await.unwrap();
        warm.append_all(vec![said(1), said(2)]).await.unwrap();
        warm.read_tail(9).await.unwrap();
        let cold = options().scope(scope.clone()).open(&root).await.unwrap();
        fs::rename(&root, &moved).unwrap();
        if what.starts_with("exchanged") {
            // A whole store with the same key, even with the same records.
            let copied = Command::new("cp").arg("-a").arg(&moved).arg(&root).status().unwrap();
            assert!(copied.success());
        }
        if what == "linked" {
            symlink(&moved, &root).unwrap();
        }
        let there = root.exists().then(|| snapshot(&root));
        for store in [&warm, &cold] {
            for refused in [
                store.append_message(said(3)).await.map(|_| ()),
                store.forget(&[1..=1]).await.map(|_| ()),
                store.read_seqs(1..=1).await.map(|_| ()),
                store.verify(|_| {}).await.map(|_| ()),
            ] {
                assert!(
                    matches!(refused, Err(Error::FolderReplaced { .. })),
                    "{what}: {refused:?}"
                );
            }
            // Through a link to the same folder, the cache still matches the disk.
            for n in [1, 99] {
                let read = store.read_tail(n).await.map(|_| ());
                let refused = matches!(read, Err(Error::FolderReplaced { .. }));
                assert!(refused || what == "linked", "{what}: {read:?}");
            }
        }
        assert!(root.exists().then(|| snapshot(&root)) == there, "{what}");
        // After it was put back, the store continues.
        fs::remove_file(&root).or_else(|_| fs::remove_dir_all(&root)).ok();
        fs::rename(&moved, &root).unwrap();
        assert_eq!(warm.append_message(said(3)).await.unwrap().seq, 3, "{what}");
        assert_eq!(texts(&cold.read_tail(9).await.unwrap()), ["1", "2", "3"], "{what}");
    }
}

#[test]
fn files_are_private_under_any_umask() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("made/by the store");
    assert!(child("a_process_with_no_umask", &root).status().unwrap().success());
    let mut seen = 0;
    for (path, (_, mode, ..)) in snapshot(&folder.path().join("made")) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode & 0o7777, expected, "{path:?}");
        seen += 1;
    }
    assert!(seen >= 16, "only {seen} files and folders were made");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_with_no_umask() {
    let Some(root) = child_folder() else { return };
    rustix::process::umask(Mode::empty());
    block_on(async {
        for scope in [
            Scope::Default,
            Scope::Guild { guild: "g".into(), channel: "c".into(), user: "u".into() },
        ] {
            let store = options().scope(scope).open(&root).await.unwrap();
            store.append_all(vec![said(1), said(2)]).await.unwrap();
            store.forget(&[1..=1]).await.unwrap();
            store.write_document(Document::Calibration, b"learned").await.unwrap();
            fs::remove_file(root.join("head")).ok();
            store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        }
    });
}

#[test]
fn a_read_only_folder_is_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    block_on(filled(&root, 3));
    let set_modes = |folder_mode, file_mode| {
        for (path, _) in snapshot(&root) {
            let mode = if path.is_dir() { folder_mode } else { file_mode };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let mut command = child("a_process_that_may_only_read", &root);
    if rustix::process::geteuid().is_root() {
        // Modes do not restrict root, so another user must try.
        const NOBODY: u32 = 65_534;
        for path in snapshot(folder.path()).into_keys() {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(std::env::current_exe().unwrap())
            .args(child_args("a_process_that_may_only_read"))
            .env(CHILD, &root);
        let possible = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x"])
            .arg(std::env::current_exe().unwrap())
            .status();
        if !possible.is_ok_and(|status| status.success()) {
            eprintln!(
                "SKIPPED: running as root, and `setpriv` cannot run this test as someone else"
            );
            return;
        }
    }
    for (folder_mode, file_mode) in [(0o500, 0o600), (0o500, 0o400)] {
        set_modes(folder_mode, file_mode);
        let before = snapshot(&root);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        let records_and_head = |mut files: std::collections::BTreeMap<PathBuf, _>| {
            files.remove(&root.join("lock"));
            files
        };
        assert!(records_and_head(snapshot(&root)) == records_and_head(before));
    }
    set_modes(0o700, 0o600);
    assert_eq!(block_on(async { open(&root).await.append_message(said(4)).await.unwrap().seq }), 4);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_may_only_read() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open(&root).await;
        for refused in [
            store.append_message(said(4)).await.map(|_| ()),
            store.forget(&[1..=1]).await.map(|_| ()),
        ] {
            assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        }
        assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["1", "2", "3"]);
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
        // A new store cannot be created either.
        let new = options().open(root.join("new")).await.unwrap();
        assert!(new.read_tail(9).await.unwrap().messages.is_empty());
        assert!(matches!(new.append_message(said(1)).await, Err(Error::Io { .. })));
    });
}

#[tokio::test]
async fn a_check_says_which_file_bears_a_number_twice_or_has_come_back() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(one.path()).await;
    store.append_message(said("1")).await.unwrap();
    for file in fs::read_dir(one.path()).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, two.path().join(file.file_name().unwrap())).unwrap();
    }
    let other = open(two.path()).await;
    let mut later = said("another 2");
    later.timestamp += jiff::SignedDuration::from_secs(1);
    let stranger = other.append_message(later).await.unwrap();
    store.append_message(said("2")).await.unwrap();
    let name = stranger.file_name();
    fs::copy(two.path().join(&name), one.path().join(&name)).unwrap();
    let report = store.verify(|_| {}).await.unwrap();
    let duplicate =
        report.findings.iter().find(|f| f.kind == FindingKind::DuplicateNumber).unwrap();
    assert_eq!((duplicate.file.as_deref(), duplicate.seqs), (Some(&*name), Some((2, 2))));

    // Packed, and restored after it was forgotten.
    let packed = tempfile::tempdir().unwrap();
    let store = options().loose_files(1).open(packed.path()).await.unwrap();
    store.append_all((1..=8).map(said).collect()).await.unwrap();
    store.pack(|_| {}).await.unwrap();
    store.append_message(said(9)).await.unwrap();
    let packs = packed.path().join("packs");
    let kept: Vec<_> = fs::read_dir(&packs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    let loose = records(packed.path());
    let newest: Vec<_> = loose.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    store.forget(&[1..=9]).await.unwrap();
    for (path, bytes) in kept.iter().chain(&newest) {
        fs::write(path, bytes).unwrap();
    }
    let report = open(packed.path()).await.verify(|_| {}).await.unwrap();
    let returned = report.findings.iter().filter(|f| f.kind == FindingKind::Resurrected);
    let places: Vec<&str> = returned.filter_map(|finding| finding.file.as_deref()).collect();
    let expected =
        |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(places.contains(&&*expected(&newest[0].0)), "{places:?}");
    let pack = format!("packs/{}:", expected(&kept[0].0));
    assert!(places.iter().any(|place| place.starts_with(&pack)), "{places:?}");
}
