//! Options that select a conversation.

use super::*;

fn scopes(home: &Home) -> Vec<String> {
    let all = rows(&home.run(&["scopes", "--json"]));
    all.iter().map(|row| row["scope"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_bare_word_is_the_name_of_a_conversation() {
    let home = Home::new();
    for scope in ["kitchen", "named/kitchen", "living room"] {
        assert_eq!(code(&home.run(&["--scope", scope, "append", "x"])), 0);
    }
    assert_eq!(scopes(&home), ["named/kitchen", "named/living%20room"]);
    for (wrong, meant) in
        [("dms/42", "dm/42"), ("Guild/1/2", "guild/1/2/USER"), ("Default", "default")]
    {
        let refused = home.run(&["--scope", wrong, "tail"]);
        assert_eq!(code(&refused), 2);
        assert!(err(&refused).contains(&format!("did you mean {meant}?")), "{}", err(&refused));
    }
}

#[test]
fn people_and_rooms_of_a_home_have_conversations_of_their_own() {
    let home = Home::new();
    for (arguments, scope) in [
        (&["--user", "ann"][..], "dm/ann"),
        (&["--room", "kitchen"], "named/kitchen"),
        (&["--user", "ann", "--room", "kitchen"], "guild/home/kitchen/ann"),
    ] {
        assert_eq!(code(&home.run(&[arguments, &["append", scope]].concat())), 0, "{scope}");
        let kept = rows(&home.run(&["--scope", scope, "tail", "--json"]));
        assert_eq!((kept.len(), &kept[0]["content"]), (1, &Value::from(scope)));
    }
    for other in [["--scope", "default"], ["--context", "Kitchen"]] {
        let refused = home.run(&[&other[..], &["--room", "kitchen", "tail"]].concat());
        assert_eq!(code(&refused), 2);
        assert!(err(&refused).contains("give one of them"), "{}", err(&refused));
    }
    assert_eq!(code(&home.run(&["--user", "", "tail"])), 1);
}
