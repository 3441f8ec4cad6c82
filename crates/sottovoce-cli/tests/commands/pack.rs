use super::*;

/// Stores this many messages, in batches small enough for single files.
fn keep(home: &Home, count: usize) {
    let lines: Vec<String> = (1..=count).map(|n| user(&n.to_string())).collect();
    for some in lines.chunks(8) {
        assert_eq!(code(&home.feed(&["append"], some.concat())), 0);
    }
}

fn loose(home: &Home) -> usize {
    let names = std::fs::read_dir(home.store()).unwrap();
    names.filter(|name| name.as_ref().unwrap().path().extension().is_some()).count()
}

#[test]
fn packing_on_request_leaves_the_newest_loose_and_tells_what_it_did() {
    let home = Home::new();
    keep(&home, 120);
    assert_eq!(loose(&home), 120);
    let packed = home.run(&["pack"]);
    assert_eq!(code(&packed), 0, "{}", err(&packed));
    assert!(
        out(&packed).contains("moved 56 messages into packs: 0 before, 1 now"),
        "{}",
        out(&packed)
    );
    assert_eq!(loose(&home), 64);
    let again = home.run(&["pack", "--json"]);
    let row = &rows(&again)[0];
    assert_eq!(
        (&row["moved"], &row["packsBefore"], &row["packsAfter"]),
        (&0.into(), &1.into(), &1.into())
    );
    assert!(row["bytes"].as_u64().unwrap() > 56 * 200);
    let expected: Vec<String> = (1..=120).map(|n| n.to_string()).collect();
    assert_eq!(home.words(), expected);
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn packing_nothing_makes_nothing() {
    let home = Home::new();
    assert_eq!(code(&home.run(&["pack"])), 0);
    assert!(!home.key().exists() && !home.store().exists());
    assert_eq!(code(&home.run(&["init"])), 0);
    assert_eq!(code(&home.run(&["pack"])), 0);
    assert!(!home.store().exists());
}

#[test]
fn a_lost_head_is_to_be_rebuilt_before_anything_is_packed() {
    let home = Home::new();
    keep(&home, 70);
    std::fs::remove_file(home.store().join("head")).unwrap();
    let refused = home.run(&["pack"]);
    assert_eq!(code(&refused), 1);
    assert!(
        err(&refused).contains("head") && err(&refused).contains("sottovoce repair"),
        "{}",
        err(&refused)
    );
    assert_eq!(loose(&home), 70);
    assert_eq!(code(&home.run(&["repair", "--yes"])), 0);
    assert_eq!(code(&home.run(&["pack"])), 0);
    assert_eq!((loose(&home), home.words().len()), (64, 70));
}
