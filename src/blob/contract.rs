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
fn the_lock_excludes_and_tells_when_its_holder_gave_up_half_way() {
    each(|blobs| {
        let held = blobs.lock(SOON).unwrap();
        assert!(!held.abandoned());
        assert!(matches!(blobs.lock(SOON), Err(Error::LockTimeout { .. })));
        drop(held);
        let next = blobs.lock(SOON).unwrap();
        assert!(next.abandoned());
        next.finish();
        assert!(!blobs.lock(SOON).unwrap().abandoned());
    });
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
        assert_eq!(blobs.set_mark(None).unwrap().is_some(), blobs.mark().unwrap().is_some());
        blobs.create("a", b"x").unwrap();
        let mut marks = vec![blobs.mark().unwrap()];
        for change in unmarking {
            let mark = blobs.set_mark(None).unwrap();
            assert!(mark.is_some() && !marks.contains(&mark));
            marks.push(mark);
            for change in leaving {
                change(blobs);
                assert_eq!(blobs.mark().unwrap(), mark);
            }
            change(blobs);
            assert!(!marks.contains(&blobs.mark().unwrap()));
            // Whoever knows that nothing was changed may say so.
            assert_eq!(blobs.set_mark(mark).unwrap(), mark);
            assert_eq!(blobs.mark().unwrap(), mark);
        }
    });
}
