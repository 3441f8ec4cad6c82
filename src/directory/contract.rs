//! The contract of directories, as tests that run on each backend.

use std::time::Duration;

use super::{Directory, EntryKind, fs::FsDirectory, memory::MemoryDirectory};
use crate::Error;

const SOON: Duration = Duration::from_millis(30);

fn each(test: impl Fn(&dyn Directory)) {
    test(&MemoryDirectory::default());
    let folder = tempfile::tempdir().unwrap();
    test(&FsDirectory::new(&folder.path().join("made"), &["below".into()]).unwrap());
}

fn names(directory: &dyn Directory) -> Vec<String> {
    let mut names = Vec::new();
    directory
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
    each(|directory| {
        assert!(names(directory).is_empty());
        assert_eq!(directory.read("a").unwrap(), None);
        assert_eq!(directory.read_cached("a").unwrap(), None);
        directory.remove("a").unwrap();
    });
}

#[test]
fn create_never_replaces() {
    each(|directory| {
        assert!(directory.create("a", b"first").unwrap());
        assert!(!directory.create("a", b"second").unwrap());
        assert_eq!(directory.read("a").unwrap().unwrap(), b"first");
        assert_eq!(names(directory), ["a"]);
    });
}

#[test]
fn replace_and_overwrite_change_what_is_read() {
    each(|directory| {
        for bytes in [&b"one"[..], b"two", b"longer", b"s"] {
            directory.replace("a", bytes).unwrap();
            assert_eq!(directory.read_cached("a").unwrap().unwrap(), bytes);
            let other = [bytes, bytes].concat();
            directory.overwrite("a", &other).unwrap();
            assert_eq!(directory.read_cached("a").unwrap().unwrap(), other);
            assert_eq!(directory.read("a").unwrap().unwrap(), other);
        }
        directory.sync().unwrap();
        assert_eq!(names(directory), ["a"]);
        directory.remove("a").unwrap();
        assert_eq!(directory.read_cached("a").unwrap(), None);
    });
}

#[test]
fn replace_verified_reads_the_bytes_back_before_they_count() {
    each(|directory| {
        directory.replace("a", b"before").unwrap();
        for good in [false, true] {
            let outcome = directory.replace_verified(
                "a",
                &mut |sink| sink(b"one ").and_then(|()| sink(b"two")),
                &mut |written| {
                    assert_eq!(directory.read("a").unwrap().unwrap(), b"before");
                    let mut bytes = vec![0; 9];
                    assert_eq!(written.size(), 7);
                    assert_eq!(written.read_at(0, &mut bytes).unwrap(), 7);
                    assert_eq!(&bytes[..7], b"one two");
                    Ok(good)
                },
            );
            assert_eq!(outcome.unwrap(), good);
            let expected: &[u8] = if good { b"one two" } else { b"before" };
            assert_eq!(directory.read("a").unwrap().unwrap(), expected);
            assert_eq!(names(directory), ["a"]);
        }
        let refused = Error::NoRandomness;
        let mut refused = Some(refused);
        let outcome =
            directory
                .replace_verified("a", &mut |_| Err(refused.take().unwrap()), &mut |_| Ok(true));
        assert!(matches!(outcome, Err(Error::NoRandomness)));
        assert_eq!(directory.read("a").unwrap().unwrap(), b"one two");
        assert_eq!(names(directory), ["a"]);
    });
}

#[test]
fn folders_within_folders_are_listed_once_something_is_in_them() {
    each(|directory| {
        let deep = directory.folder("a").folder("b");
        let listed = || {
            let mut found = Vec::new();
            directory.list(&mut |name, kind| found.push((name.to_vec(), kind))).unwrap();
            found
        };
        assert!(listed().is_empty());
        deep.replace("c", b"d").unwrap();
        assert_eq!(listed(), [(b"a".to_vec(), EntryKind::Folder)]);
    });
}

#[test]
fn what_is_moved_is_in_the_folder_and_replaces_nothing_there() {
    each(|directory| {
        assert!(!directory.move_into(b"a", "aside").unwrap());
        for bytes in [&b"first"[..], b"second", b"third"] {
            assert!(directory.create("a", bytes).unwrap());
            assert!(directory.move_into(b"a", "aside").unwrap());
            assert_eq!(directory.read("a").unwrap(), None);
        }
        assert!(!directory.move_into(b"a", "aside").unwrap());
        let aside = directory.folder("aside");
        assert_eq!(names(&*aside), ["a", "a.2", "a.3"]);
        assert_eq!(aside.read("a").unwrap().unwrap(), b"first");
        assert_eq!(aside.read("a.3").unwrap().unwrap(), b"third");
    });
}

#[test]
fn a_folder_goes_aside_whole_and_is_removed_only_once_it_is_empty() {
    each(|directory| {
        directory.create("keeps the folder", b"").unwrap();
        directory.remove_folder("talk").unwrap();
        directory.folder("talk").folder("packs").create("a", b"kept").unwrap();
        assert!(directory.move_into(b"talk", "aside").unwrap());
        let aside = directory.folder("aside");
        let packs = aside.folder("talk").folder("packs");
        assert_eq!(packs.read("a").unwrap().unwrap(), b"kept");
        aside.remove_folder("talk").unwrap();
        assert_eq!(packs.read("a").unwrap().unwrap(), b"kept");
        packs.remove("a").unwrap();
        aside.folder("talk").remove_folder("packs").unwrap();
        aside.remove_folder("talk").unwrap();
        directory.remove_folder("aside").unwrap();
        assert_eq!(names(directory), ["keeps the folder"]);
    });
}

#[test]
fn links_pipes_folders_and_names_that_are_no_text_are_moved_as_they_are() {
    use rustix::fs::{CWD, FileType, Mode};
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let directory = FsDirectory::new(&root, &[]).unwrap();
    directory.create("keeps the folder", b"").unwrap();
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
        assert!(directory.move_into(name, "aside").unwrap(), "{name:?}");
        let name = std::ffi::OsStr::from_bytes(name);
        assert!(root.join(name).symlink_metadata().is_err(), "{name:?}");
        assert!(root.join("aside").join(name).symlink_metadata().is_ok(), "{name:?}");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"untouched");
    assert_eq!(std::fs::read(root.join("aside/folder/inside")).unwrap(), b"kept");
    // A symbolic link in the place of that folder is not followed.
    std::os::unix::fs::symlink(folder.path(), root.join("elsewhere")).unwrap();
    directory.create("a", b"").unwrap();
    assert!(matches!(directory.move_into(b"a", "elsewhere"), Err(Error::NotPlain { .. })));
    assert!(!folder.path().join("a").exists() && root.join("a").exists());
}

#[test]
fn the_lock_excludes_and_tells_when_its_holder_gave_up_half_way() {
    each(|directory| {
        let held = directory.lock(SOON).unwrap();
        assert!(!held.was_dirty());
        assert!(matches!(directory.lock(SOON), Err(Error::LockTimeout { .. })));
        drop(held);
        let next = directory.lock(SOON).unwrap();
        assert!(next.was_dirty());
        next.release_as_found();
        let next = directory.lock(SOON).unwrap();
        assert!(next.was_dirty(), "the work of the first holder is half done still");
        next.release_clean();
        directory.lock(SOON).unwrap().release_as_found();
        assert!(!directory.lock(SOON).unwrap().was_dirty());
    });
}

#[test]
fn syncing_ancestors_makes_no_folder_and_minds_none_that_is_missing_or_is_none() {
    each(|directory| {
        directory.sync_ancestors().unwrap();
        assert!(names(directory).is_empty());
        directory.create("a", b"").unwrap();
        directory.sync_ancestors().unwrap();
        assert_eq!(names(directory), ["a"]);
    });
    let folder = tempfile::tempdir().unwrap();
    let root = FsDirectory::new(&folder.path().join("root"), &[]).unwrap();
    root.sync_ancestors().unwrap();
    assert!(!root.path().exists());
    root.create("file", b"").unwrap();
    std::os::unix::fs::symlink("/nowhere", root.path().join("link")).unwrap();
    for name in ["file", "link", "missing"] {
        root.folder(name).sync_ancestors().unwrap();
    }
}

#[test]
fn a_folder_that_was_closed_meanwhile_is_opened_again_and_no_other_in_its_place() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("talk");
    let directory = FsDirectory::new(&path, &[]).unwrap();
    directory.create("a", b"kept").unwrap();
    assert_eq!(directory.read_cached("a").unwrap().unwrap(), b"kept");
    let held = directory.lock(SOON).unwrap();
    assert!(directory.close());
    assert!(matches!(directory.lock(SOON), Err(Error::LockTimeout { .. })), "locks stay held");
    held.release_clean();
    for _ in 0..2 {
        assert_eq!(directory.read_cached("a").unwrap().unwrap(), b"kept");
        assert_eq!(directory.read("a").unwrap().unwrap(), b"kept");
        assert!(directory.close());
    }
    // The file system may give the new folder the number of the removed one, which nothing holds open.
    std::fs::remove_dir_all(&path).unwrap();
    assert!(matches!(directory.read("a"), Err(Error::FolderReplaced { .. })));
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("a"), "another").unwrap();
    assert!(matches!(directory.read("a"), Err(Error::FolderReplaced { .. })));
    assert!(matches!(directory.create("b", b""), Err(Error::FolderReplaced { .. })));
}

#[test]
fn far_more_directories_than_may_be_open_are_used_at_once() {
    use rustix::process::{Resource, getrlimit};
    let root = tempfile::tempdir().unwrap();
    let most = getrlimit(Resource::Nofile).current.unwrap_or(1024).min(4096);
    let directories: Vec<FsDirectory> = (0..=most)
        .map(|number| FsDirectory::new(&root.path().join(number.to_string()), &[]).unwrap())
        .collect();
    for directory in &directories {
        std::fs::create_dir(directory.path()).unwrap();
        std::fs::write(directory.path().join("a"), "x").unwrap();
        assert_eq!(directory.read_cached("a").unwrap().unwrap(), b"x");
    }
    let open = directories.iter().filter(|directory| directory.is_open()).count() as u64;
    assert!(open <= most / 4, "{open} of {most}");
    assert!(directories.iter().all(|directory| directory.read("a").unwrap().is_some()));
}

#[test]
fn a_waiting_locker_goes_on_when_the_lock_is_free() {
    each(|directory| {
        let held = directory.lock(SOON).unwrap();
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| directory.lock(Duration::from_secs(20)).map(|_| ()));
            std::thread::sleep(SOON);
            assert!(!waiting.is_finished());
            held.release_clean();
            waiting.join().unwrap().unwrap();
        });
    });
}

#[test]
fn a_mark_stays_until_a_name_is_published_or_removed() {
    type Change = fn(&dyn Directory);
    let unmarking: [Change; 3] = [
        |directory| assert!(directory.create("new", b"x").unwrap()),
        |directory| directory.replace("a", b"y").unwrap(),
        |directory| directory.remove("new").unwrap(),
    ];
    let leaving: [Change; 3] = [
        |directory| directory.overwrite("a", b"z").unwrap(),
        |directory| directory.sync().unwrap(),
        |directory| assert!(directory.read("a").unwrap().is_some()),
    ];
    each(|directory| {
        assert_eq!(
            directory.renew_change_stamp().unwrap().is_some(),
            directory.change_stamp().unwrap().is_some()
        );
        directory.create("a", b"x").unwrap();
        let mut marks = vec![directory.change_stamp().unwrap()];
        for change in unmarking {
            let mark = directory.renew_change_stamp().unwrap();
            assert!(mark.is_some() && !marks.contains(&mark));
            marks.push(mark);
            for change in leaving {
                change(directory);
                assert_eq!(directory.change_stamp().unwrap(), mark);
            }
            change(directory);
            assert!(!marks.contains(&directory.change_stamp().unwrap()));
        }
    });
}
