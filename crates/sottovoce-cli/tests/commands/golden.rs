//! The golden home of format 1: what `tests/fixtures/v1/make.py` made once, every later program opens.

use std::path::PathBuf;

use super::*;

const KEY: [(&str, &str); 2] =
    [("SOTTOVOCE__CONTEXT__ENCRYPTIONKEY", "test key, not secret"), ("TZ", "Europe/Berlin")];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/v1").join(name)
}

/// Whether what was printed has all that was printed then. Later programs may say more.
fn says(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => then
            .iter()
            .all(|(name, then)| now.get(name).map_or(then.is_null(), |now| says(now, then))),
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| says(now, then))
        }
        _ => now == then,
    }
}

/// A home with the golden store.
fn home() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.store().parent().unwrap()).unwrap();
    copied(&golden("whole"), &home.store());
    home
}

fn run(home: &Home, arguments: &[&str]) -> Output {
    home.command(arguments).envs(KEY).output().unwrap()
}

#[test]
fn a_home_of_format_1_says_what_it_said() {
    let home = home();
    let said = std::fs::read_to_string(golden("said.json")).unwrap();
    let said: Vec<Value> = serde_json::from_str(&said).unwrap();
    assert!(said.len() > 9);
    for said in &said {
        let command: Vec<&str> =
            said["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let now = rows(&run(&home, &command));
        let then: Vec<Value> = said["printed"]
            .as_str()
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(now.len(), then.len(), "{command:?}");
        for (now, then) in now.iter().zip(&then) {
            assert!(says(now, then), "{command:?}\nnow:  {now}\nthen: {then}");
        }
    }
    let checked = run(&home, &["verify", "--all"]);
    assert_eq!(code(&checked), 0, "{}{}", out(&checked), err(&checked));
    // It is gone on with.
    assert_eq!(code(&run(&home, &["append", "And this is new."])), 0);
    assert_eq!(code(&run(&home, &["--scope", "named/kitchen", "forget", "9-40", "--yes"])), 0);
    assert_eq!(code(&run(&home, &["--scope", "named/kitchen", "append", "One more recipe."])), 0);
    assert_eq!(code(&run(&home, &["verify", "--all"])), 0);
    let found = out(&run(&home, &["search", "boiler"]));
    assert!(found.contains("The boiler is serviced every October."), "{found}");
}

#[cfg(feature = "share")]
#[test]
fn a_remote_of_format_1_gives_a_later_device_what_it_holds() {
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    let remote = folder.path().join("remote");
    copied(&golden("remote"), &remote);
    let invitation = std::fs::read_to_string(golden("code")).unwrap();
    let at = remote.to_str().unwrap();
    let joined =
        home.run(&["device", "join", invitation.trim(), "--at", at, "--name", "later", "--all"]);
    assert_eq!(code(&joined), 0, "{}", err(&joined));
    let synced = home.run(&["sync"]);
    assert_eq!(code(&synced), 0, "{}", err(&synced));
    let kitchen = rows(&home.run(&["--scope", "named/kitchen", "tail", "-n", "1000", "--json"]));
    assert_eq!(kitchen.len(), 295);
    let guild = rows(&home.run(&["--scope", "guild/7/8/9", "tail", "--json"]));
    let words: Vec<_> = guild.iter().map(|row| row["content"].as_str().unwrap()).collect();
    assert_eq!(words, ["Hello, everybody.", "The code is 0815."], "what was forgotten stays so");
    let lease = out(&home.run(&["artifact", "list"]));
    assert!(lease.contains("lease.txt"), "{lease}");
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
}
