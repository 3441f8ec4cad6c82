//! What every backend must do, run on each of them.

use std::time::Duration;

use super::{Blobs, EntryKind, fs::FsBlobs, memory::MemoryBlobs};
use crate::Error;

const SOON: Duration = Duration::from_millis(30);

fn each(test: impl Fn(&dyn Blobs)) {
    test(&MemoryBlobs::default());
    let folder = tempfile::tempdir().unwrap();
    test(&FsBlobs::new(&folder.path().join("made"), &["below".into()]).unwrap());
}

fn names(blobs: &dyn Blobs) -> Vec<String> {
    let mut names = Vec::new();
    blobs
        .list(&mut |name, kind| {
            assert_eq!(kind, EntryKind::File);
            names.push(String::from_utf8(name.into()).unwrap());
        })
        .unwrap();
    names.sort();
    names
}

#[test]
fn what_does_not_exist_is_empty_not_an_error() {
    each(|blobs| {
        assert!(names(blobs).is_empty());
        assert_eq!(blobs.read("a").unwrap(), None);
        assert_eq!(blobs.peek("a").unwrap(), None);
        blobs.remove("a").unwrap();
    });
}

#[test]
fn create_never_replaces() {
    each(|blobs| {
        assert!(blobs.create("a", b"first").unwrap());
        assert!(!blobs.create("a", b"second").unwrap());
        assert_eq!(blobs.read("a").unwrap().unwrap(), b"first");
        assert_eq!(names(blobs), ["a"]);
    });
}

#[test]
fn replace_and_overwrite_change_what_is_read_and_peeked() {
    each(|blobs| {
        for bytes in [&b"one"[..], b"two", b"longer", b"s"] {
            blobs.replace("a", bytes).unwrap();
            assert_eq!(blobs.peek("a").unwrap().unwrap(), bytes);
            let other = [bytes, bytes].concat();
            blobs.overwrite("a", &other).unwrap();
            assert_eq!(blobs.peek("a").unwrap().unwrap(), other);
            assert_eq!(blobs.read("a").unwrap().unwrap(), other);
        }
        blobs.sync().unwrap();
        assert_eq!(names(blobs), ["a"]);
        blobs.remove("a").unwrap();
        assert_eq!(blobs.peek("a").unwrap(), None);
    });
}

#[test]
fn what_is_exchanged_is_read_back_before_it_counts() {
    each(|blobs| {
        blobs.replace("a", b"before").unwrap();
        for good in [false, true] {
            let outcome = blobs.exchange(
                "a",
                &mut |sink| sink(b"one ").and_then(|()| sink(b"two")),
                &mut |written| {
                    assert_eq!(blobs.read("a").unwrap().unwrap(), b"before");
                    let mut bytes = vec![0; 9];
                    assert_eq!(written.size(), 7);
                    assert_eq!(written.read_at(0, &mut bytes).unwrap(), 7);
                    assert_eq!(&bytes[..7], b"one two");
                    Ok(good)
                },
            );
            assert_eq!(outcome.unwrap(), good);
            let expected: &[u8] = if good { b"one two" } else { b"before" };
            assert_eq!(blobs.read("a").unwrap().unwrap(), expected);
            assert_eq!(names(blobs), ["a"]);
        }
        let refused = Error::NoRandomness;
        let mut refused = Some(refused);
        let outcome = blobs.exchange("a", &mut |_| Err(refused.take().unwrap()), &mut |_| Ok(true));
        assert!(matches!(outcome, Err(Error::NoRandomness)));
        assert_eq!(blobs.read("a").unwrap().unwrap(), b"one two");
        assert_eq!(names(blobs), ["a"]);
    });
}

#[test]
fn folders_within_folders_are_listed_once_something_is_in_them() {
    each(|blobs| {
        let deep = blobs.folder("a").folder("b");
        let listed = || {
            let mut found = Vec::new();
            blobs.list(&mut |name, kind| found.push((name.to_vec(), kind))).unwrap();
            found
        };
        assert!(listed().is_empty());
        deep.replace("c", b"d").unwrap();
        assert_eq!(listed(), [(b"a".to_vec(), EntryKind::Folder)]);
    });
}

#[test]
fn what_is_set_aside_is_in_the_folder_and_replaces_nothing_there() {
    each(|blobs| {
        assert!(!blobs.set_aside(b"a", "aside").unwrap());
        for bytes in [&b"first"[..], b"second", b"third"] {
            assert!(blobs.create("a", bytes).unwrap());
            assert!(blobs.set_aside(b"a", "aside").unwrap());
            assert_eq!(blobs.read("a").unwrap(), None);
        }
        assert!(!blobs.set_aside(b"a", "aside").unwrap());
        let aside = blobs.folder("aside");
        assert_eq!(names(&*aside), ["a", "a.2", "a.3"]);
        assert_eq!(aside.read("a").unwrap().unwrap(), b"first");
        assert_eq!(aside.read("a.3").unwrap().unwrap(), b"third");
    });
}

#[test]
fn a_folder_goes_aside_whole_and_is_removed_only_once_it_is_empty() {
    each(|blobs| {
        blobs.create("keeps the folder", b"").unwrap();
        blobs.remove_folder("talk").unwrap();
        blobs.folder("talk").folder("packs").create("a", b"kept").unwrap();
        assert!(blobs.set_aside(b"talk", "aside").unwrap());
        let aside = blobs.folder("aside");
        let packs = aside.folder("talk").folder("packs");
        assert_eq!(packs.read("a").unwrap().unwrap(), b"kept");
        aside.remove_folder("talk").unwrap();
        assert_eq!(packs.read("a").unwrap().unwrap(), b"kept");
        packs.remove("a").unwrap();
        aside.folder("talk").remove_folder("packs").unwrap();
        aside.remove_folder("talk").unwrap();
        blobs.remove_folder("aside").unwrap();
        assert_eq!(names(blobs), ["keeps the folder"]);
    });
}

#[test]
fn links_pipes_folders_and_names_that_are_no_text_are_set_aside_as_they_are() {
    use rustix::fs::{CWD, FileType, Mode};
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let blobs = FsBlobs::new(&root, &[]).unwrap();
    blobs.create("keeps the folder", b"").unwrap();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "untouched").unwrap();
    std::os::unix::fs::symlink(&victim, root.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere", root.join("dangling")).unwrap();
    std::fs::create_dir(root.join("folder")).unwrap();
    std::fs::write(root.join("folder/inside"), "kept").unwrap();
    rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let no_text = std::ffi::OsStr::from_bytes(b"\xff\xfe\n");
    std::fs::write(root.join(no_text), "kept").unwrap();
    for name in [&b"link"[..], b"dangling", b"folder", b"pipe", no_text.as_bytes()] {
        assert!(blobs.set_aside(name, "aside").unwrap(), "{name:?}");
        let name = std::ffi::OsStr::from_bytes(name);
        assert!(root.join(name).symlink_metadata().is_err(), "{name:?}");
        assert!(root.join("aside").join(name).symlink_metadata().is_ok(), "{name:?}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"untouched");
    assert_eq!(std::fs::read(root.join("aside/folder/inside")).unwrap(), b"kept");
    // A link in the place of that folder is not followed.
    std::os::unix::fs::symlink(folder.path(), root.join("elsewhere")).unwrap();
    blobs.create("a", b"").unwrap();
    assert!(matches!(blobs.set_aside(b"a", "elsewhere"), Err(Error::NotPlain { .. })));
    assert!(!folder.path().join("a").exists() && root.join("a").exists());
}

#[test]
fn the_lock_excludes_and_tells_when_its_holder_gave_up_half_way() {
    each(|blobs| {
        let held = blobs.lock(SOON).unwrap();
        assert!(!held.abandoned());
        assert!(matches!(blobs.lock(SOON), Err(Error::LockTimeout { .. })));
        drop(held);
        let next = blobs.lock(SOON).unwrap();
        assert!(next.abandoned());
        next.pass_on();
        let next = blobs.lock(SOON).unwrap();
        assert!(next.abandoned(), "the work of the first holder is half done still");
        next.finish();
        blobs.lock(SOON).unwrap().pass_on();
        assert!(!blobs.lock(SOON).unwrap().abandoned());
    });
}

#[test]
fn anchoring_makes_no_folder_and_minds_none_that_is_missing_or_is_none() {
    each(|blobs| {
        blobs.anchor().unwrap();
        assert!(names(blobs).is_empty());
        blobs.create("a", b"").unwrap();
        blobs.anchor().unwrap();
        assert_eq!(names(blobs), ["a"]);
    });
    let folder = tempfile::tempdir().unwrap();
    let root = FsBlobs::new(&folder.path().join("root"), &[]).unwrap();
    root.anchor().unwrap();
    assert!(!root.path().exists());
    root.create("file", b"").unwrap();
    std::os::unix::fs::symlink("/nowhere", root.path().join("link")).unwrap();
    for name in ["file", "link", "missing"] {
        root.folder(name).anchor().unwrap();
    }
}

#[test]
fn a_waiting_locker_goes_on_when_the_lock_is_free() {
    each(|blobs| {
        let held = blobs.lock(SOON).unwrap();
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| blobs.lock(Duration::from_secs(20)).map(|_| ()));
            std::thread::sleep(SOON);
            assert!(!waiting.is_finished());
            held.finish();
            waiting.join().unwrap().unwrap();
        });
    });
}

#[test]
fn a_mark_stays_until_a_name_is_published_or_removed() {
    type Change = fn(&dyn Blobs);
    let unmarking: [Change; 3] = [
        |blobs| assert!(blobs.create("new", b"x").unwrap()),
        |blobs| blobs.replace("a", b"y").unwrap(),
        |blobs| blobs.remove("new").unwrap(),
    ];
    let leaving: [Change; 3] = [
        |blobs| blobs.overwrite("a", b"z").unwrap(),
        |blobs| blobs.sync().unwrap(),
        |blobs| assert!(blobs.read("a").unwrap().is_some()),
    ];
    each(|blobs| {
        assert_eq!(blobs.renew_mark().unwrap().is_some(), blobs.mark().unwrap().is_some());
        blobs.create("a", b"x").unwrap();
        let mut marks = vec![blobs.mark().unwrap()];
        for change in unmarking {
            let mark = blobs.renew_mark().unwrap();
            assert!(mark.is_some() && !marks.contains(&mark));
            marks.push(mark);
            for change in leaving {
                change(blobs);
                assert_eq!(blobs.mark().unwrap(), mark);
            }
            change(blobs);
            assert!(!marks.contains(&blobs.mark().unwrap()));
        }
    });
}
