//! Process memory: what remains of words in it, and might be swapped out, after they were forgotten and after the index
//! is gone.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a child process tells its parent what it found")]

use std::process::Command;

use crate::memory_search::{found_in_memory, text};
use jiff::{Timestamp, tz::TimeZone};
use sottovoce_recall::{
    Asked, BuildOptions, Index, Question, Role, SearchQuery, Segment, Turn, put_newer_first,
};

const TALK: [(&str, Role); 8] = [
    ("My 0 is called 1, and the 2 of my sister is new.", Role::User),
    ("What a nice 1! Was it a 9?", Role::Assistant),
    ("Ich habe die 3 und die 4 nicht mehr, aber das ist mir egal.", Role::User),
    ("Le 5 que nous 6 est dans la rue, et il est beau.", Role::User),
    ("Las 7 que tú 8 son para mi abuela, pero no las veo.", Role::User),
    ("Die \u{e9}0 und die e\u{301}1 sind nicht da, und U\u{308}3 ist auch nicht da.", Role::User),
    ("Is it a 0 or a 1? Both, said the 9. The 2 knows. And then there was nothing.", Role::User),
    ("私の犬2の名前は3です。", Role::User),
];
const ALONE: [(&str, Role); 6] = [
    ("0", Role::User),
    ("1", Role::User),
    ("2", Role::User),
    ("9", Role::User),
    ("der die das 3", Role::User),
    ("el las los 7", Role::User),
];
const QUESTIONS: [&str; 5] = [
    "What is my 0 called?",
    "Wo ist die 3, und was ist mit der 4 \u{e9}1?",
    "And his 9?",
    "Où est le 5 ? Nous 6.",
    "犬2 7 8",
];

fn push(index: &mut Index, secrets: std::ops::Range<u64>) {
    for (seq, (form, role)) in secrets.zip(TALK.iter().cycle()) {
        let (words, name) = (text(form), text("Anna 2"));
        let speaker = Some(name.as_str()).filter(|_| *role == Role::User);
        let thread = Some(name.as_str());
        let caption = text("a photo of a 9");
        let caption = Some(caption.as_str());
        let at = seq as i64 * 60_000;
        let turn = Turn::new(seq, at, 0, *role, &words);
        index.push(&Turn { speaker, thread, caption, ..turn });
    }
}

fn ask(index: &mut Index) -> usize {
    let mut asked = Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), 1970..=1970);
    let (earlier, name) = (text("Tell me of the 0 and its 1."), text("Anna 2"));
    let earlier = [earlier.as_str()];
    (asked.earlier, asked.speaker) = (&earlier, Some(name.as_str()));
    let mut found = 0;
    for form in QUESTIONS {
        let words = text(form);
        let question = Question::new(&words, &asked);
        let mut hits = index.rank(&question, |_| true, 9);
        put_newer_first(&mut hits, &question);
        found += hits.clone().len();
        let query = SearchQuery::parse(&words).unwrap();
        let turns = TALK.map(|(form, _)| text(form));
        found += turns.iter().filter(|turn| query.clone().matches(turn)).count();
        found += index.search(&query).len();
    }
    let name = text("from:\"Anna 2\" \"0 is called\" 犬");
    let query = SearchQuery::parse(&name).unwrap();
    found += SearchQuery::parse(&text("from:\"Anna 2\" speaker:3")).unwrap_err().part().len();
    query.passes(Role::User, Some(&name), 0);
    query.matches(&text(TALK[7].0));
    found
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_indexes_and_forgets() {
    if std::env::var_os("SOTTOVOCE_TEST_CHILD").is_none() {
        return;
    }
    // Searching must not leave copies itself: the first search shows what exists before.
    assert_eq!(found_in_memory(), [0; 10]);
    // The last words that were stemmed: nothing came after them that could have taken their memory.
    let mut stemmed = [0; 10];
    for (form, role) in TALK.iter().chain(&ALONE) {
        drop(Segment::build([Turn::new(1, 0, 0, *role, &text(form))], &BuildOptions::default()));
        stemmed.iter_mut().zip(found_in_memory()).for_each(|(all, found)| *all += found);
    }
    println!("@stemmed {stemmed:?}");
    let mut index = Index::default();
    for (seq, words) in (0..).zip(["Turn on the light.", "It is on.", "Where is Ben's cat?"]) {
        index.push(&Turn::new(seq, 0, 0, Role::User, words));
    }
    push(&mut index, 10..18);
    assert!(ask(&mut index) > 0);
    push(&mut index, 18..200);
    assert!(ask(&mut index) > 0);
    // As stored and loaded again, joined, and without some of its turns.
    let texts = TALK.map(|(form, _)| text(form));
    let turns = (300..).zip(&texts).map(|(seq, words)| Turn::new(seq, 0, 0, Role::User, words));
    let segment = Segment::build(turns, &BuildOptions::default());
    drop(texts);
    let read = Segment::from_bytes(&segment.to_bytes()).unwrap();
    index.insert(7, Segment::join([&segment, &read]).retain(|seq| seq != 303));
    drop((segment, read));
    ask(&mut index);
    push(&mut index, 400..404);
    let held = found_in_memory();
    assert!(held.iter().all(|found| *found > 0), "the search must see what is held: {held:?}");
    index.retain(|seq| seq < 3);
    assert_eq!(index.len(), 3);
    println!("@forgotten {:?}", found_in_memory());
    push(&mut index, 500..600);
    ask(&mut index);
    drop(index);
    println!("@gone {:?}", found_in_memory());
    let leaked: &'static str = Box::leak(text("0").as_str().into());
    assert!(found_in_memory()[0] > 0, "the search must see what is leaked: {}", leaked.len());
    println!("@done");
}

#[test]
fn no_word_stays_in_memory_when_its_turn_is_forgotten_or_the_index_is_gone() {
    let test = "memory::a_process_that_indexes_and_forgets";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "--test-threads=1", test])
        .env("SOTTOVOCE_TEST_CHILD", "1")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("@done"), "{said}");
    for what in ["stemmed", "forgotten", "gone"] {
        assert!(said.contains(&format!("@{what} {:?}\n", [0; 10])), "{said}");
    }
}
