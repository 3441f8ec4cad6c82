//! Conversations shared by several homes through a folder.

use std::os::unix::fs::PermissionsExt;

use super::*;
use ollama::Ask;
use talk::Talk;

/// Homes that share a folder.
pub(super) struct Shared {
    remote: tempfile::TempDir,
    pub(super) first: Home,
}

impl Shared {
    /// The first device, which has begun to share and has said something.
    pub(super) fn new(options: &[&str]) -> Self {
        let shared = Self { remote: tempfile::tempdir().unwrap(), first: Home::new() };
        shared.first.keep(&["canary one"]);
        let init = ["sync", "init", shared.remote(), "--name", "first"];
        done(&shared.first.run(&[&init, options].concat()));
        done(&shared.first.run(&["sync"]));
        shared
    }

    pub(super) fn remote(&self) -> &str {
        self.remote.path().to_str().unwrap()
    }

    pub(super) fn code(&self) -> String {
        let shown = self.first.run(&["device", "add"]);
        done(&shown);
        out(&shown).trim().to_owned()
    }

    /// Another device that has joined.
    pub(super) fn joined(&self, name: &str) -> Home {
        let home = Home::new();
        done(&home.run(&["device", "join", &self.code(), "--name", name, "--all"]));
        home
    }
}

pub(super) fn done(output: &Output) {
    assert_eq!(code(output), 0, "{}{}", out(output), err(output));
}

pub(super) fn sync(homes: &[&Home]) {
    for home in homes {
        done(&home.run(&["sync"]));
    }
}

fn status(home: &Home) -> Value {
    rows(&home.run(&["--json", "sync", "status"])).remove(0)
}

#[test]
fn what_two_devices_say_without_a_network_both_have_after_syncing() {
    let shared = Shared::new(&[]);
    let (first, second) = (&shared.first, shared.joined("second"));
    second.keep(&["canary two"]);
    first.keep(&["canary three"]);
    sync(&[&second, first, &second]);
    let all = ["canary one", "canary two", "canary three"];
    assert_eq!(first.words(), second.words().as_slice(), "the order differs");
    for words in all {
        assert_eq!(first.words().iter().filter(|known| *known == words).count(), 1, "{words}");
    }
    let again = second.run(&["sync"]);
    assert_eq!(out(&again), "nothing new\n", "{}", err(&again));
}

#[test]
fn what_one_device_forgets_the_others_and_the_remote_lose() {
    let shared = Shared::new(&[]);
    let (first, second) = (&shared.first, shared.joined("second"));
    first.keep(&["canary gone"]);
    sync(&[first, &second]);
    assert!(second.words().contains(&"canary gone".to_owned()));
    done(&first.run(&["forget", "--last", "--yes"]));
    sync(&[first]);
    let told = rows(&second.run(&["--json", "sync"])).remove(0);
    assert_eq!(told["removed"], 1, "{told}");
    assert_eq!(second.words(), ["canary one"]);
    let third = shared.joined("third");
    sync(&[&third]);
    assert_eq!(third.words(), ["canary one"], "the remote has it still");
}

#[test]
fn messages_to_one_person_stay_at_home_unless_they_are_named() {
    let shared = Shared::new(&[]);
    let (first, second) = (&shared.first, shared.joined("second"));
    let has =
        |home: &Home, scope: &str| out(&home.run(&["--scope", scope, "tail"])).contains("canary");
    for scope in ["dm/ann", "dm/bob", "kitchen"] {
        done(&first.run(&["--scope", scope, "append", "canary"]));
    }
    sync(&[first, &second]);
    assert!(has(&second, "kitchen") && !has(&second, "dm/ann") && !has(&second, "dm/bob"));
    done(&first.run(&["sync", "select", "--all", "--except", "dm/bob"]));
    let shows = out(&first.run(&["sync", "select"]));
    assert_eq!(shows, "this device shares all conversations, except dm/bob\n");
    sync(&[first, &second]);
    assert!(has(&second, "dm/ann") && !has(&second, "dm/bob"));
    done(&first.run(&["sync", "select", "--usual"]));
    assert_eq!(status(first)["shares"]["all"], false);
    for (pattern, meant) in [("kitchen*", "named/kitchen*"), ("dms/ann", "dm/ann")] {
        let refused = first.run(&["sync", "select", "--only", pattern]);
        assert_eq!(code(&refused), 2);
        assert!(err(&refused).contains(&format!("did you mean {meant}?")), "{}", err(&refused));
    }
}

#[test]
fn the_status_tells_what_waits_on_which_side() {
    let shared = Shared::new(&[]);
    let (first, second) = (&shared.first, shared.joined("second"));
    sync(&[&second, first]);
    let before = status(first);
    assert_eq!((&before["unpublished"], &before["closed"]), (&0.into(), &false.into()), "{before}");
    first.keep(&["canary two"]);
    assert_eq!(status(first)["unpublished"], 1);
    sync(&[first]);
    let after = status(first);
    let devices = after["devices"].as_array().unwrap();
    let names: Vec<&Value> = devices.iter().map(|device| &device["name"]).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!((&devices[0]["here"], &devices[1]["here"]), (&true.into(), &false.into()));
    assert!(devices[1]["behind"].as_u64().unwrap() > 0, "{after}");
    assert!(after["syncedAt"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let text = out(&first.run(&["sync", "status"]));
    for part in ["nothing waits", "the default and the named", "first (here)", "second"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    sync(&[&second, first]);
    assert_eq!(status(first)["devices"][1]["behind"], 0);
}

#[test]
fn a_report_has_one_shape_for_programs() {
    let shared = Shared::new(&[]);
    let second = shared.joined("second");
    let report = rows(&second.run(&["--json", "sync"])).remove(0);
    let expected = serde_json::json!({
        "received": 1, "removed": 0, "artifacts": 0, "published": 0, "forgotten": 0, "beganAgain": false, "problems": [],
    });
    assert_eq!(report, expected);
    for arguments in [&["sync", "--from-start"][..], &["sync", "--mend"]] {
        let again = rows(&second.run(&[&["--json"], arguments].concat())).remove(0);
        assert_eq!((&again["received"], &again["problems"]), (&0.into(), &Value::Array(vec![])));
    }
    assert_eq!(second.words(), ["canary one"]);
}

#[test]
fn a_store_that_has_stopped_keeps_everything_and_may_begin_again() {
    let shared = Shared::new(&[]);
    let first = &shared.first;
    let twice = first.run(&["sync", "init", shared.remote()]);
    assert_eq!(code(&twice), 1);
    assert!(err(&twice).contains("sottovoce sync stop"), "{}", err(&twice));
    done(&first.run(&["sync", "stop"]));
    for arguments in [&["sync"][..], &["sync", "status"], &["device", "add"], &["sync", "stop"]] {
        let refused = first.run(arguments);
        assert_eq!(code(&refused), 1, "{arguments:?}");
        assert!(err(&refused).contains("sottovoce sync init"), "{}", err(&refused));
    }
    assert_eq!(first.words(), ["canary one"]);
    done(&first.run(&["sync", "init", shared.remote()]));
    sync(&[first]);
}

#[test]
fn before_the_first_use_a_command_that_looks_makes_nothing() {
    let home = Home::new();
    for arguments in [&["sync"][..], &["sync", "status"], &["device", "list"]] {
        let refused = home.run(arguments);
        assert_eq!(code(&refused), 1, "{arguments:?}: {}", err(&refused));
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_not_there_is_not_created() {
    let home = Home::new();
    let refused = home.run(&["sync", "init", "no/such/folder"]);
    assert_eq!(code(&refused), 1, "{}", err(&refused));
    assert!(err(&refused).contains("create the bucket"), "{}", err(&refused));
    assert!(!home.path().join("no").exists());
    let refused = home.run(&["sync", "init", "s4://bucket"]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
}

#[test]
fn credentials_come_from_a_private_file_and_no_output_shows_them() {
    let home = Home::new();
    home.keep(&["canary"]);
    let file = home.path().join("credentials");
    std::fs::write(&file, "WEBDAV_USERNAME=ann\nWEBDAV_PASSWORD=hunter2\n").unwrap();
    // Nobody listens there.
    let init = ["--verbose", "sync", "init", "http://127.0.0.1:1/dav", "--credentials-file"];
    let init = [&init[..], &[file.to_str().unwrap()]].concat();
    for mode in [0o644, 0o600] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let failed = home.run(&init);
        let said = format!("{}{}", out(&failed), err(&failed));
        assert!(!said.contains("hunter2") && !said.contains("aHVudGVyMg"), "{said}");
        match mode {
            0o644 => assert!(code(&failed) == 2 && said.contains("chmod 600"), "{said}"),
            _ => assert!(code(&failed) == 7 && said.contains("check the network"), "{said}"),
        }
    }
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    home.configure(r#"{"Sync": {"CredentialsFile": "../../credentials"}}"#);
    let refused = home.run(&["sync", "init", "http://127.0.0.1:1/dav"]);
    assert!(code(&refused) == 2 && err(&refused).contains("chmod 600"), "{}", err(&refused));
    home.configure(r#"{"Sync": {"Password": "hunter2"}}"#);
    let refused = home.run(&["sync"]);
    assert!(code(&refused) == 5 && !err(&refused).contains("hunter2"), "{}", err(&refused));
}

/// Whether something becomes so in time.
fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        is_so()
    })
}

#[test]
fn a_watching_device_publishes_within_seconds_and_ends_at_ctrl_c() {
    let shared = Shared::new(&[]);
    let (first, second) = (&shared.first, shared.joined("second"));
    let watching = first.spawn(&["sync", "--watch"]);
    let is_shared = |words: &str| {
        done(&second.run(&["sync"]));
        second.words().iter().any(|known| known == words)
    };
    assert!(soon(|| is_shared("canary one")));
    first.keep(&["canary two"]);
    assert!(soon(|| is_shared("canary two")));
    signal(&watching, "-INT");
    let ended = ended(watching);
    assert_eq!(code(&ended), 130, "{}", err(&ended));
    assert!(out(&ended).contains("published 1 message"), "{}", out(&ended));
    assert!(!format!("{}{}", out(&ended), err(&ended)).contains("canary"));
    let idle = Home::new().run(&["sync", "--watch"]);
    assert_eq!(code(&idle), 1, "a store that does not sync is no use to watch");
}

#[test]
fn a_watching_device_that_is_ended_publishes_what_was_said_last() {
    let shared = Shared::new(&[]);
    let (first, second) = (&shared.first, shared.joined("second"));
    for (number, name) in ["-TERM", "-INT"].iter().enumerate() {
        let watching = first.spawn(&["sync", "--watch"]);
        let words = format!("canary {number}");
        first.keep(&[&words]);
        // The first sync has it, or the last one.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let last = format!("canary last {number}");
        first.keep(&[&last]);
        signal(&watching, name);
        ended(watching);
        done(&second.run(&["sync"]));
        assert!(second.words().contains(&last), "{name}");
    }
}

#[test]
fn a_folder_that_is_not_mounted_is_waited_for_and_nothing_is_written_below_it() {
    let shared = Shared::new(&[]);
    let (away, folder) = (tempfile::tempdir().unwrap(), shared.remote.path());
    let kept = away.path().join("kept");
    std::fs::rename(folder, &kept).unwrap();
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir(folder).unwrap();
        }
        let refused = shared.first.run(&["sync"]);
        assert_eq!(code(&refused), 7, "{}", err(&refused));
        assert!(err(&refused).contains("sync --mend"), "{}", err(&refused));
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    done(&shared.first.run(&["sync", "--mend"]));
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::rename(&kept, folder).unwrap();
    done(&shared.first.run(&["sync"]));
}

#[test]
fn a_server_s_prompts_have_what_arrived_while_it_runs() {
    let shared = Shared::new(&[]);
    let talk = Talk::new();
    done(&talk.run(&["device", "join", &shared.code(), "--name", "server"]));
    let mut command = talk.command(&["serve", "--addr", "127.0.0.1:0"]);
    let served = serve::started(command.env("SOTTOVOCE__SYNC__INTERVALSECONDS", "1"));
    // The conversation is open before anything arrives.
    served.ask("/api/chat", &serve::says("What is new?"));
    shared.first.keep(&["My cat is called Minka."]);
    sync(&[&shared.first]);
    let arrived = || talk.home.words().iter().any(|words| words.contains("Minka"));
    assert!(soon(arrived), "{}", served.end().1);
    served.ask("/api/chat", &serve::says("What is my cat called?"));
    let asked = &talk.stub.seen(Ask::Reply)[1].body;
    assert!(asked.contains("Minka"), "{asked}");
    let published = || {
        sync(&[&shared.first]);
        shared.first.words().iter().any(|words| words == "What is my cat called?")
    };
    assert!(soon(published), "what is said to a server is not published");
    let (_, said) = served.end();
    assert!(!said.contains("Minka"), "{said}");
}
