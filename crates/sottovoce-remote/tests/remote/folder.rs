//! A folder as a remote

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sottovoce_remote::testing::remote_contract;
use sottovoce_remote::{Credentials, ErrorKind, MAX_OBJECT, Remote, open};

fn remote(folder: &Path) -> Arc<dyn Remote> {
    open(&format!("file://{}", folder.display()), &Credentials::default()).unwrap()
}

#[tokio::test]
async fn a_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    remote_contract(&*remote(folder.path()), "folder").await.unwrap();
}

#[tokio::test]
async fn a_folder_that_has_gone_is_neither_empty_nor_created_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("disk");
    let address = format!("file://{}", folder.display());
    assert_eq!(open(&address, &Credentials::default()).unwrap_err().kind(), ErrorKind::NoContainer);
    std::fs::create_dir(&folder).unwrap();
    let remote = remote(&folder);
    std::fs::remove_dir(&folder).unwrap();
    let kinds = [
        remote.put("a/b", "x".into()).await.unwrap_err().kind(),
        remote.get("a/b").await.unwrap_err().kind(),
        remote.list("a").await.unwrap_err().kind(),
        remote.delete("a/b").await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::NoContainer; 4]);
    assert!(!folder.exists());
}

#[tokio::test]
async fn what_others_put_into_a_folder_leads_nowhere_and_blocks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    let remote = remote(folder.path());
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    for name in ["out/secret", "link", "pipe"] {
        let read = tokio::time::timeout(Duration::from_secs(5), remote.get(name)).await;
        read.expect("it blocks").unwrap_err();
    }
    remote.put("out/new", "x".into()).await.unwrap_err();
    remote.list("out").await.unwrap_err();
    remote.delete("out/secret").await.unwrap_err();
    assert!(outside.path().join("secret").exists() && !outside.path().join("new").exists());
    assert_eq!(remote.list("").await.unwrap(), [] as [&str; 0]);
}

#[tokio::test]
async fn an_object_that_grew_beyond_the_limit_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(remote(folder.path()).get("huge").await.unwrap_err().kind(), ErrorKind::TooLarge);
    file.set_len(MAX_OBJECT as u64).unwrap();
    assert_eq!(remote(folder.path()).get("huge").await.unwrap().unwrap().len(), MAX_OBJECT);
}

#[tokio::test]
async fn a_listing_removes_the_temporary_files_of_dead_processes_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (name, age) in [(".put-old", 25), (".put-new", 23), (".other", 25)] {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        #[allow(clippy::disallowed_methods, reason = "the age of a file")]
        file.set_modified(SystemTime::now() - Duration::from_secs(age * 3600)).unwrap();
    }
    assert_eq!(remote(folder.path()).list("").await.unwrap(), [] as [&str; 0]);
    let left = [".put-old", ".put-new", ".other"].map(|name| folder.path().join(name).exists());
    assert_eq!(left, [false, true, true]);
}

#[tokio::test]
async fn a_reader_never_sees_half_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(folder.path());
    remote.put("a", vec![0; 1 << 20].into()).await.unwrap();
    let writer = Arc::clone(&remote);
    let writing = tokio::spawn(async move {
        for round in 1..20_u8 {
            writer.put("a", vec![round; 1 << 20].into()).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let bytes = remote.get("a").await.unwrap().unwrap();
        assert!(bytes.len() == 1 << 20 && bytes.iter().all(|byte| *byte == bytes[0]));
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn objects_are_readable_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    remote(folder.path()).put("a", "x".into()).await.unwrap();
    let mode = std::fs::metadata(folder.path().join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_folder_is_no_object_to_read_or_delete() {
    let folder = tempfile::tempdir().unwrap();
    let remote = remote(folder.path());
    remote.put("a/b", "x".into()).await.unwrap();
    assert_eq!(remote.get("a").await.unwrap(), None);
    remote.delete("a").await.unwrap();
    assert_eq!(remote.get("a/b").await.unwrap().unwrap(), "x");
}
