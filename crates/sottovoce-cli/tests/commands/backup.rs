use super::*;

fn prompt(home: &Home) -> String {
    let shown = out(&home.run(&["prompt", "And now?", "--renderer", "text"]));
    shown.rsplit_once("Current time: ").unwrap().0.to_owned()
}

#[test]
fn a_sealed_backup_brings_a_lost_store_back_to_the_prompt() {
    let home = Home::new();
    home.keep(&["canary one", "canary two", "canary three"]);
    std::fs::write(home.path().join("note.txt"), "canary four").unwrap();
    assert_eq!(code(&home.run(&["artifact", "add", "note.txt"])), 0);
    assert_eq!(code(&home.feed(&["--scope", "dm/7", "append"], user("canary five"))), 0);
    assert_eq!(code(&home.run(&["prune", "--max-tokens", "1", "--keep-recent", "2"])), 0);
    let before = (prompt(&home), home.words());
    assert!(!before.0.contains("canary one") && before.0.contains("canary three"));
    let file = home.path().join("backup.sottovoce");
    let file = file.to_str().unwrap();
    let written = home.run(&["export", "--sealed", "--all", file]);
    assert_eq!(code(&written), 0, "{}", err(&written));
    let bytes = std::fs::read(file).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
    // An existing file is never overwritten.
    assert_eq!(code(&home.run(&["export", "--sealed", "--all", file])), 2);
    assert_eq!(std::fs::read(file).unwrap(), bytes);

    std::fs::remove_dir_all(home.store()).unwrap();
    assert!(home.words().is_empty());
    let restored = home.run(&["import", "backup", file]);
    assert_eq!(code(&restored), 0, "{}", err(&restored));
    assert_eq!((prompt(&home), home.words()), before);
    assert_eq!(code(&home.run(&["verify"])), 0);
    let listed = rows(&home.run(&["artifact", "list", "--json"]));
    let id = listed[0]["id"].as_str().unwrap();
    let shown = home.run(&["artifact", "show", id]);
    assert!(out(&shown).contains("canary four"), "{}", out(&shown));
    // Another import stores nothing twice.
    let again = home.run(&["import", "backup", file]);
    assert_eq!((code(&again), home.words()), (0, before.1));
}

#[test]
fn a_backup_under_a_key_that_is_not_known_opens_nowhere() {
    let home = Home::new();
    home.keep(&["canary"]);
    let file = home.path().join("backup.sottovoce");
    assert_eq!(code(&home.run(&["export", "--sealed", file.to_str().unwrap()])), 0);
    let other = Home::new();
    other.keep(&["another store"]);
    let refused = other.run(&["import", "backup", file.to_str().unwrap()]);
    assert_eq!(code(&refused), 4, "{}", err(&refused));
    assert_eq!(other.words(), ["another store"]);
}

#[test]
fn plain_text_leaves_the_vault_only_when_somebody_says_so() {
    let home = Home::new();
    home.keep(&["canary one", "canary two"]);
    let file = home.path().join("talk.json");
    let refused = home.run(&["export", file.to_str().unwrap()]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    assert!(err(&refused).contains("plain text") && !file.exists());
    let written = home.run(&["export", file.to_str().unwrap(), "--seqs", "2-2", "--yes"]);
    assert_eq!(code(&written), 0, "{}", err(&written));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("canary two") && !text.contains("canary one"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    let shown = out(&home.run(&["export", "-", "--format", "markdown", "--yes"]));
    assert!(shown.contains("canary one") && shown.contains("canary two"), "{shown}");
    let json = out(&home.run(&["export", "-", "--yes"]));
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
}

#[test]
fn an_export_for_elara_is_a_folder_that_comes_back() {
    let home = Home::new();
    home.keep(&["canary one", "canary two"]);
    let folder = home.path().join("elara");
    let written = home.run(&["export", folder.to_str().unwrap(), "--for", "elara", "--yes"]);
    assert_eq!(code(&written), 0, "{}", err(&written));
    let other = Home::new();
    let taken = other.run(&["import", "elara", folder.to_str().unwrap()]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert_eq!(other.words(), home.words());
}

#[test]
fn nothing_is_exported_into_the_stores_own_folder() {
    let home = Home::new();
    home.keep(&["canary"]);
    let before = entries(&home.store());
    for file in ["talk.json", "dms/talk.sottovoce"] {
        let file = home.store().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let file = file.to_str().unwrap();
        for arguments in [
            &["export", "--yes", file][..],
            &["export", "--sealed", file],
            &["export", "--yes", "--for", "elara", file],
            &["key", "export", "--to", file],
            &["rekey", "--to-key-file", file],
        ] {
            let refused = home.run(arguments);
            assert_eq!(code(&refused), 2, "{arguments:?}: {}", err(&refused));
            assert!(err(&refused).contains("the store's own folder"), "{}", err(&refused));
        }
    }
    std::fs::remove_dir(home.store().join("dms")).unwrap();
    assert_eq!(entries(&home.store()), before);
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn an_export_to_a_program_that_reads_only_its_beginning_is_no_error() {
    let home = Home::new();
    home.keep(&["canary ".repeat(20_000).as_str(), "another", "and another"]);
    for form in ["json", "markdown"] {
        let mut child = home.spawn(&["export", "-", "--yes", "--format", form]);
        drop(child.stdout.take());
        let done = ended(child);
        assert_eq!((code(&done), err(&done).contains("error")), (0, false), "{}", err(&done));
    }
}

/// The commands of the page in this section, run in a shell as somebody would who copies them.
fn run_page(home: &Home, section: &str) -> Output {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/moving.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("\n## ").find(|text| text.starts_with(section)).unwrap();
    let script: String =
        section.split("```sh\n").skip(1).map(|x| x.split("```").next().unwrap()).collect();
    assert!(!script.is_empty());
    let programs = Path::new(env!("CARGO_BIN_EXE_sottovoce")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script]).env_clear().env("HOME", home.path());
    shell.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    shell.current_dir(home.path()).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_store_moves_to_a_new_machine_word_by_word_as_the_page_says() {
    let (old, new) = (Home::new(), Home::new());
    old.keep(&["canary one", "canary two"]);
    assert_eq!(code(&old.feed(&["--scope", "dm/7", "append"], user("canary three"))), 0);
    let left = run_page(&old, "On the old machine");
    assert!(left.status.success(), "{}", err(&left));
    for file in ["backup.sottovoce", "key.backup"] {
        std::fs::copy(old.path().join(file), new.path().join(file)).unwrap();
    }
    let arrived = run_page(&new, "On the new machine");
    assert!(arrived.status.success(), "{}", err(&arrived));
    assert!(out(&arrived).contains("dm/7"), "{}", out(&arrived));
    assert_eq!(new.words(), old.words());
    assert_eq!(std::fs::read(new.key()).unwrap(), std::fs::read(old.key()).unwrap());
    let after = run_page(&new, "Afterwards");
    assert!(after.status.success(), "{}", err(&after));
    new.keep(&["canary four"]);
    assert_eq!(new.words().len(), 3);
}

#[test]
fn a_restore_with_no_key_or_a_wrong_one_leaves_the_new_home_as_it_was() {
    let (old, other, new) = (Home::new(), Home::new(), Home::new());
    old.keep(&["canary"]);
    other.keep(&["another store"]);
    let file = old.path().join("backup.sottovoce");
    let file = file.to_str().unwrap();
    assert_eq!(code(&old.run(&["export", "--sealed", file])), 0);
    for (arguments, exit) in [
        (&["restore", file][..], 2),
        (&["restore", file, "--key-file", other.key().to_str().unwrap()], 4),
        (&["restore", file, "--key-file", file], 4),
        (&["import", "backup", file], 4),
    ] {
        let refused = new.run(arguments);
        assert_eq!(code(&refused), exit, "{arguments:?}: {}", err(&refused));
        assert!(!new.key().exists() && !new.store().exists(), "{arguments:?}");
    }
    // A store with a key of its own keeps it.
    let kept = std::fs::read(other.key()).unwrap();
    let refused = other.run(&["restore", file, "--key-file", old.key().to_str().unwrap()]);
    assert_eq!(code(&refused), 4, "{}", err(&refused));
    assert_eq!(
        (std::fs::read(other.key()).unwrap(), other.words()),
        (kept, vec!["another store".to_owned()])
    );
}

#[test]
fn a_backup_from_before_a_change_of_keys_opens_with_the_old_key_that_stays_beside_the_new_one() {
    let home = Home::new();
    home.keep(&["canary"]);
    let file = home.path().join("backup.sottovoce");
    assert_eq!(code(&home.run(&["export", "--sealed", file.to_str().unwrap()])), 0);
    let changed = home.run(&["rekey"]);
    assert_eq!(code(&changed), 0, "{}", err(&changed));
    let again = home.run(&["import", "backup", file.to_str().unwrap()]);
    assert_eq!((code(&again), home.words().len()), (0, 1), "{}", err(&again));
}
