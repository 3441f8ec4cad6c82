//! A team of several homes, and its server.

use std::io::{BufRead, BufReader};

use super::sync::done;
use super::*;

/// A server that runs until this is dropped, and the link that it has shown.
struct Served {
    home: Home,
    child: Child,
    link: String,
}

impl Served {
    fn new() -> Self {
        let home = Home::new();
        let mut child = home.spawn(&["team", "serve", "--addr", "127.0.0.1:0"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut link = String::new();
        lines.read_line(&mut link).unwrap();
        Self { home, child, link: link.trim().to_owned() }
    }

    /// An owner who shares the conversation `plans`.
    fn anna(&self) -> Home {
        let anna = Home::new();
        done(&anna.run(&["team", "create", &self.link, "Acme", "--as", "Anna"]));
        say(&anna, "canary on Monday");
        done(&anna.run(&["team", "share", "plans"]));
        done(&anna.run(&["team", "sync"]));
        anna
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(home: &Home, words: &str) {
    done(&home.run(&["--room", "plans", "append", words]));
}

/// Somebody whom a member has invited to `plans`.
fn guest(owner: &Home, name: &str) -> Home {
    let guest = Home::new();
    let link = guest.path().join("link");
    let link = link.to_str().unwrap();
    done(&owner.run(&["team", "invite", "plans", "--to", link]));
    done(&guest.run(&["team", "join", link, "--as", name]));
    done(&guest.run(&["team", "sync"]));
    guest
}

fn sync(homes: &[&Home]) {
    for home in homes {
        done(&home.run(&["team", "sync"]));
    }
}

/// What is in `plans`, with who said it.
fn plans(home: &Home) -> Vec<String> {
    let tail = home.run(&["--room", "plans", "tail", "--json", "-n", "100"]);
    let line = |row: &Value| {
        let words = row["content"].as_str().unwrap();
        match row["metadata"]["speaker"].as_str() {
            Some(speaker) => format!("{speaker}: {words}"),
            None => words.to_owned(),
        }
    };
    rows(&tail).iter().map(line).collect()
}

#[test]
fn a_day_of_three_members_of_which_one_is_offline_and_one_is_shut_out() {
    let served = Served::new();
    let anna = served.anna();
    let (ben, carl) = (guest(&anna, "Ben"), guest(&anna, "Carl"));
    say(&carl, "canary without a network");
    say(&ben, "canary on Tuesday");
    sync(&[&ben, &anna, &carl, &anna, &ben]);
    for (home, name) in [(&anna, "Anna"), (&ben, "Ben"), (&carl, "Carl")] {
        let mut held = plans(home);
        held.sort();
        let mut expected: Vec<String> =
            [("Anna", "on Monday"), ("Ben", "on Tuesday"), ("Carl", "without a network")]
                .iter()
                .map(|(by, words)| match *by == name {
                    true => format!("canary {words}"),
                    false => format!("{by}: canary {words}"),
                })
                .collect();
        expected.sort();
        assert_eq!(held, expected, "{name}");
    }
    let members = rows(&anna.run(&["--json", "team", "members"]));
    assert_eq!(members.len(), 3);
    let link = anna.path().join("new");
    let link = link.to_str().unwrap();
    done(&anna.run(&["team", "revoke", "Ben", "--yes", "--to", link]));
    say(&anna, "canary for Carl alone");
    sync(&[&anna]);
    let refused = ben.run(&["team", "sync"]);
    assert_eq!(code(&refused), 1);
    assert!(err(&refused).contains("does not know this member any more"), "{}", err(&refused));
    let told = carl.run(&["team", "sync"]);
    assert_eq!(code(&told), 3);
    assert!(err(&told).contains("ask for a new link"), "{}", err(&told));
    done(&carl.run(&["team", "join", link]));
    sync(&[&carl]);
    assert!(plans(&carl).contains(&"Anna: canary for Carl alone".to_owned()));
    assert!(!plans(&ben).iter().any(|line| line.contains("Carl alone")));
    let status = rows(&carl.run(&["--json", "team", "status"])).remove(0);
    assert_eq!(status["conversations"][0]["conversation"], "named/plans");
    assert_eq!(status["conversations"][0]["unpublished"], false);
    assert_eq!(status["conversations"][0]["unread"], 0);
    // What the server keeps says nothing.
    let kept = everything_in(served.home.path());
    assert!(kept.len() > 10_000);
    for words in ["canary", "Anna", "plans", "Acme"] {
        let found = kept.windows(words.len()).any(|window| window == words.as_bytes());
        assert!(!found, "{words}");
    }
}

/// The bytes of all files below a folder.
fn everything_in(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => bytes.extend(everything_in(&path)),
            false => bytes.extend(std::fs::read(path).unwrap()),
        }
    }
    bytes
}

#[test]
fn an_artifact_of_a_member_is_fetched_when_it_is_shown() {
    let served = Served::new();
    let anna = served.anna();
    let ben = guest(&anna, "Ben");
    std::fs::write(anna.path().join("boiler.txt"), "1.5 bar\n").unwrap();
    done(&anna.run(&["--room", "plans", "artifact", "add", "boiler.txt"]));
    sync(&[&anna, &ben]);
    let listed = rows(&anna.run(&["--room", "plans", "--json", "artifact", "list"])).remove(0);
    let id = listed["id"].as_str().unwrap();
    let shown = ben.run(&["--room", "plans", "artifact", "show", id]);
    assert_eq!((code(&shown), out(&shown).as_str()), (0, "1.5 bar\n"), "{}", err(&shown));
    // It is here now, also without the server.
    drop(served);
    assert_eq!(out(&ben.run(&["--room", "plans", "artifact", "show", id])), "1.5 bar\n");
    let failed = anna.run(&["team", "members"]);
    assert_eq!(code(&failed), 7, "{}", err(&failed));
}

#[test]
fn everything_that_a_member_may_read_is_exported_into_a_private_file() {
    use std::os::unix::fs::PermissionsExt;

    let served = Served::new();
    let anna = served.anna();
    done(&anna.run(&["team", "export", "all.jsonl"]));
    let file = anna.path().join("all.jsonl");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = std::fs::read_to_string(file).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["by"], &first["message"]["content"]),
        (&"Anna".into(), &"canary on Monday".into())
    );
    assert_eq!(code(&anna.run(&["team", "leave"])), 1, "an owner must remain");
    done(&anna.run(&["team", "leave", "--force"]));
    assert_eq!(plans(&anna), ["canary on Monday"]);
}

#[test]
fn what_is_no_link_or_no_named_conversation_is_refused_in_plain_words() {
    let served = Served::new();
    let anna = served.anna();
    for (arguments, exit, part) in [
        (&["team", "join", "nothing"][..], 2, "no file has this name"),
        (&["team", "join", "https://example.org/#xyz"], 2, "not a link to a team"),
        (&["team", "join", &served.link], 2, "begins a team"),
        (&["team", "create", "http://example.org/#start:x", "Acme"], 2, "https://"),
        (&["team", "share", "default"], 1, "no named conversation"),
        (&["team", "share", "dm/42"], 1, "no named conversation"),
        (&["team", "grant", "Nobody", "plans"], 1, "Nobody"),
        (&["team", "invite", "other"], 1, "named/other"),
        (&["team", "members", "--team", "Other"], 1, "Other"),
    ] {
        let refused = anna.run(arguments);
        assert_eq!(code(&refused), exit, "{arguments:?} {}", err(&refused));
        assert!(err(&refused).contains(part), "{arguments:?} {}", err(&refused));
    }
    let nobody = Home::new();
    let told = nobody.run(&["team", "sync"]);
    assert!(err(&told).contains("in no team"), "{}", err(&told));
}

#[test]
fn an_operators_token_that_stays_valid_is_not_shown() {
    let home = Home::new();
    let token = "A".repeat(43);
    let mut command = home.command(&["team", "serve", "--addr", "127.0.0.1:0"]);
    command.env("OPERATOR_TOKEN", &token).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut notes, mut start) = (String::new(), None);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while start.is_none() {
        assert!(stderr.read_line(&mut notes).unwrap() > 0, "{notes}");
        let after = notes.lines().last().and_then(|line| line.strip_prefix("the link is "));
        start = after.and_then(|rest| rest.split_once(' ')).map(|(start, _)| start.to_owned());
    }
    done(&home.run(&["team", "create", &format!("{}{token}", start.unwrap()), "Acme"]));
    child.kill().unwrap();
    let left = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    assert!(!notes.contains(&token), "{notes}");
}
