use super::*;

/// Reads lines as they arrive.
fn lines_of(child: &mut Child) -> std::sync::mpsc::Receiver<Value> {
    let (send, receive) = std::sync::mpsc::channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if send.send(serde_json::from_str(&line).unwrap()).is_err() {
                break;
            }
        }
    });
    receive
}

#[test]
fn what_is_aside_is_shown_with_its_mark_and_found_but_comes_into_no_prompt() {
    let home = Home::new();
    let task = ["append", "--role", "user", "--metadata", "aside=a task", "a parcel from Oslo"];
    assert_eq!(code(&home.run(&task)), 0);
    for arguments in [&["tail"][..], &["search", "oslo"]] {
        let shown = out(&home.run(arguments));
        assert!(shown.contains("a parcel from Oslo (aside)"), "{shown}");
    }
    let prompt = out(&home.run(&["prompt", "Where is my parcel?", "--renderer", "text"]));
    assert!(!prompt.contains("Oslo"), "{prompt}");
    assert_eq!(code(&home.run(&["forget", "1", "--yes"])), 0);
    assert_eq!(out(&home.run(&["tail"])), "");
}

#[test]
fn a_follower_shows_every_message_once_and_in_order() {
    let home = Home::new();
    home.keep(&["0"]);
    // One message at a time, so that the follower starts and polls in the middle.
    let mut writer = home.spawn(&["append", "--json"]);
    let mut input = writer.stdin.take().unwrap();
    let shown_by_writer = lines_of(&mut writer);
    let feeder = std::thread::spawn(move || {
        for n in 1..=300 {
            input.write_all(user(&n.to_string()).as_bytes()).unwrap();
        }
    });
    for _ in 0..20 {
        shown_by_writer.recv_timeout(Duration::from_secs(20)).unwrap();
    }
    let mut follower = home.spawn(&["tail", "--follow", "--json", "-n", "1000"]);
    let shown = lines_of(&mut follower);
    for n in 0..=300 {
        let row = shown.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(row["content"], n.to_string());
        assert_eq!(row["seq"], n + 1);
    }
    feeder.join().unwrap();
    assert_eq!(code(&ended(writer)), 0);
    // In batches, too.
    home.keep(&["a", "b", "c"]);
    for words in ["a", "b", "c"] {
        assert_eq!(shown.recv_timeout(Duration::from_secs(20)).unwrap()["content"], words);
    }
    signal(&follower, "-TERM");
    assert_eq!(code(&ended(follower)), 0);
    assert!(shown.recv_timeout(Duration::from_secs(20)).is_err(), "nothing is shown twice");
}

#[test]
fn a_follower_says_what_it_newly_finds_once() {
    let home = Home::new();
    home.keep(&["one"]);
    let mut follower = home.spawn(&["tail", "--follow", "--json", "-n", "0"]);
    let shown = lines_of(&mut follower);
    std::thread::sleep(Duration::from_millis(500));
    for words in ["two", "three"] {
        home.keep(&[words]);
        assert_eq!(shown.recv_timeout(Duration::from_secs(20)).unwrap()["content"], words);
        std::thread::sleep(Duration::from_millis(500));
    }
    std::fs::write(home.store().join("not ours"), "x").unwrap();
    home.keep(&["four"]);
    assert_eq!(shown.recv_timeout(Duration::from_secs(20)).unwrap()["content"], "four");
    std::thread::sleep(Duration::from_millis(500));
    signal(&follower, "-INT");
    let ended = ended(follower);
    assert_eq!(code(&ended), 0);
    assert_eq!(err(&ended).matches("not ours").count(), 1, "{}", err(&ended));
}

#[test]
fn only_as_many_as_asked_for_are_shown() {
    let home = Home::new();
    home.keep(&["one", "two", "three"]);
    for (n, shown) in [("0", &[][..]), ("2", &["two", "three"]), ("9", &["one", "two", "three"])] {
        let tail = rows(&home.run(&["tail", "--json", "-n", n]));
        assert_eq!(tail.iter().map(|row| &row["content"]).collect::<Vec<_>>(), shown);
    }
}

#[test]
fn a_follower_shows_what_is_imported_before_the_newest() {
    let home = Home::new();
    home.keep(&["now"]);
    let mut follower = home.spawn(&["tail", "--follow", "--json"]);
    let shown = lines_of(&mut follower);
    let next = || shown.recv_timeout(Duration::from_secs(20)).unwrap()["content"].clone();
    assert_eq!(next(), "now");
    import::usual(&home, 2);
    let imported = home.run(&["import", "elara"]);
    assert_eq!(code(&imported), 0, "{}{}", out(&imported), err(&imported));
    assert_eq!([next(), next()], ["m0", "m1"]);
    home.keep(&["later"]);
    assert_eq!(next(), "later");
    signal(&follower, "-INT");
    assert_eq!(code(&ended(follower)), 0);
}

#[test]
fn a_tail_of_nothing_says_so() {
    let home = Home::new();
    home.keep(&["one"]);
    for (arguments, said) in [
        (&["--scope", "kitchen", "tail"][..], "nothing is kept in named/kitchen\n"),
        (&["--thread", "7", "tail"], "nothing is kept in default in thread 7\n"),
        (&["tail", "-n", "0"], ""),
        (&["--scope", "kitchen", "tail", "--json"], ""),
        (&["tail"], ""),
    ] {
        let tail = home.run(arguments);
        assert_eq!((code(&tail), err(&tail).as_str()), (0, said), "{arguments:?}");
    }
}
