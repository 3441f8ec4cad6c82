//! The ranking of the carried conversations is the same however they are divided into segments.

use crate::{
    conversations::{Conversation, conversations},
    encoding::{understand, vector},
};
use jiff::{civil::date, tz::TimeZone};
use proptest::prelude::*;
use sottovoce_recall::{Asked, BuildOptions, Hit, Index, Question, Role, Segment, Turn};

fn question(index: &Index, text: &str) -> Question {
    let years = index.years().unwrap();
    let now = date(*years.end(), 7, 20).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap();
    Question::new(text, &Asked::new(now, years))
}

fn rank(index: &mut Index, text: &str) -> Vec<Hit> {
    let question = question(index, text);
    index.rank(&question, |_| true, usize::MAX)
}

fn whole(conversation: &Conversation) -> Index {
    let mut index = Index::default();
    index.insert(0, Segment::build(conversation.turns(), &BuildOptions::default()));
    index
}

#[test]
fn finds_most_answers_among_the_first_five() {
    let (mut found, mut wanted) = (0, 0);
    for conversation in conversations() {
        let mut index = whole(&conversation);
        understand(&mut index, |seq| &conversation.turns[seq as usize].x);
        for asking in &conversation.qas {
            let question = question(&index, &asking.q).meaning(&vector(&asking.q));
            let hits = index.rank(&question, |_| true, 5);
            let first: Vec<u64> = hits.iter().map(|hit| hit.seq).collect();
            found += asking.ev.iter().filter(|seq| first.contains(seq)).count();
            wanted += asking.ev.len();
        }
    }
    assert!(found * 10 >= wanted * 8, "{found} of {wanted}");
}

/// An index of the turns, divided before each of `cuts`; turns from `tail` on are pushed, with questions in between.
fn divided(turns: &[Turn<'_>], cuts: &[usize], tail: usize, ask: &[usize]) -> Index {
    let mut index = Index::default();
    let (packed, loose) = turns.split_at(tail);
    let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (tail + 1)).chain([0, tail]).collect();
    bounds.sort_unstable();
    for (number, pair) in (0..).zip(bounds.windows(2)) {
        let segment =
            Segment::build(packed[pair[0]..pair[1]].iter().copied(), &BuildOptions::default());
        let read = Segment::from_bytes(&segment.to_bytes()).unwrap();
        assert_eq!(read, segment);
        index.insert(number, read);
    }
    for (at, turn) in loose.iter().enumerate() {
        index.push(turn);
        if ask.contains(&at) {
            rank(&mut index, "Where is the cat?");
        }
    }
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn segments_do_not_change_the_ranking(
        cuts in prop::collection::vec(0usize..60, 0..6),
        tail in 0usize..30,
        ask in prop::collection::vec(0usize..30, 0..5),
        of in 0usize..2,
    ) {
        let conversation = &conversations()[of];
        let turns = conversation.turns();
        let mut index = divided(&turns, &cuts, turns.len() - tail, &ask);
        let mut whole = whole(conversation);
        for asking in &conversation.qas {
            prop_assert!(rank(&mut index, &asking.q) == rank(&mut whole, &asking.q), "{}", asking.q);
        }
    }

    #[test]
    fn forgotten_turns_were_never_there(
        forgotten in prop::collection::btree_set(0u64..42, 0..20),
        cut in 0usize..42,
        tail in 0usize..10,
    ) {
        let conversation = &conversations()[0];
        let turns = conversation.turns();
        let mut index = divided(&turns, &[cut], turns.len() - tail, &[3]);
        index.retain(|seq| !forgotten.contains(&seq));
        let kept: Vec<_> = turns.into_iter().filter(|turn| !forgotten.contains(&turn.seq)).collect();
        let mut rebuilt = Index::default();
        rebuilt.insert(7, Segment::build(kept, &BuildOptions::default()));
        for asking in &conversation.qas {
            prop_assert!(rank(&mut index, &asking.q) == rank(&mut rebuilt, &asking.q), "{}", asking.q);
        }
    }
}

const WORDS: [&str; 14] = [
    "dog", "Bruno", "called", "my", "Tuesday", "I", "always", "garden", "7", "犬", "und", "der",
    "naïve", "Anna.",
];

/// A turn of a corpus that nobody would say: words by number, minutes since the one before, role, speaker, thread.
type Said = (Vec<usize>, i64, usize, usize, usize);

fn said() -> impl Strategy<Value = Said> {
    let minutes = prop_oneof![-600i64..600, Just(0), Just(100_000)];
    (prop::collection::vec(0..WORDS.len(), 0..60), minutes, 0usize..3, 0usize..3, 0usize..2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn neither_segments_nor_forgetting_change_the_ranking_of_any_corpus(
        corpus in prop::collection::vec(said(), 1..40),
        cuts in prop::collection::vec(0usize..40, 0..6),
        tail in 0usize..40,
        ask in prop::collection::vec(0usize..40, 0..4),
        forgotten in prop::collection::btree_set(0u64..40, 0..20),
        visible in 0u64..4,
    ) {
        let texts: Vec<String> = corpus
            .iter()
            .map(|said| said.0.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" "))
            .collect();
        let mut at = 1_700_000_000_000;
        let mut turns = Vec::new();
        for (seq, ((_, minutes, role, speaker, thread), text)) in (0..).zip(corpus.iter().zip(&texts)) {
            at += minutes * 60_000;
            let role = [Role::User, Role::Assistant, Role::Tool][*role];
            let day = (at / 86_400_000) as i32;
            turns.push(Turn {
                speaker: [None, Some("Anna"), Some("Ben")][*speaker],
                thread: [None, Some("other")][*thread],
                ..Turn::new(seq, at, day, role, text)
            });
        }
        let mut index = divided(&turns, &cuts, turns.len() - tail.min(turns.len()), &ask);
        index.retain(|seq| !forgotten.contains(&seq));
        turns.retain(|turn| !forgotten.contains(&turn.seq));
        let mut anew = Index::default();
        anew.insert(0, Segment::build(turns.iter().copied(), &BuildOptions::default()));
        if turns.is_empty() {
            return Ok(());
        }
        for asked in ["What is my dog called?", "Was ist der naïve Bruno?", "when did Anna dog Tuesday", "犬"] {
            prop_assert!(rank(&mut index, asked) == rank(&mut anew, asked), "{}", asked);
            // What is visible is what is left of all, and the best are its beginning.
            let question = question(&anew, asked);
            let mut all = anew.rank(&question, |_| true, usize::MAX);
            all.retain(|hit| hit.seq % 4 >= visible);
            for n in [1, 3, 100] {
                let best = index.rank(&question, |seq| seq % 4 >= visible, n);
                prop_assert!(best == all[..n.min(all.len())], "{} of {}", n, asked);
            }
        }
    }
}

#[test]
fn a_packed_tail_is_not_found_twice() {
    let conversation = &conversations()[0];
    let turns = conversation.turns();
    let mut index = divided(&turns, &[], 10, &[5, 9]);
    let packed = turns.iter().filter(|turn| (10..30).contains(&turn.seq)).copied();
    index.insert(9, Segment::build(packed, &BuildOptions::default()));
    assert_eq!(index.len(), turns.len());
    for asking in &conversation.qas {
        assert!(
            rank(&mut index, &asking.q) == rank(&mut whole(conversation), &asking.q),
            "{}",
            asking.q
        );
    }
}

#[test]
fn only_visible_turns_are_found() {
    let conversation = &conversations()[0];
    let mut index = whole(conversation);
    let question = question(&index, "What is my dog called?");
    let hits = index.rank(&question, |seq| seq % 7 == 3, 50);
    assert!(hits.iter().all(|hit| hit.seq % 7 == 3));
    assert_eq!(hits.len(), conversation.turns.len().div_ceil(7));
}

#[test]
fn a_thread_is_ranked_by_itself_among_thousands_of_turns_of_others() {
    let mut index = Index::default();
    let turns = (0..4000u64).map(|seq| {
        let text = "I said that the basil stands in the snow near my teacher's window.";
        let mut turn = Turn::new(seq, seq as i64 * 60_000, 20_000, Role::User, text);
        turn.thread = match seq % 1000 {
            0 => Some("a"),
            1 => None,
            _ => Some("b"),
        };
        turn
    });
    index.insert(0, Segment::build(turns, &BuildOptions::default()));
    let question = question(&index, "basil snow teacher");
    let mut of = |thread| {
        let hits = index.rank_in(thread, &question, |seq| seq > 0, 64);
        let mut seqs: Vec<u64> = hits.iter().map(|hit| hit.seq).collect();
        seqs.sort_unstable();
        seqs
    };
    assert_eq!(of(Some("a")), [1000, 2000, 3000]);
    assert_eq!(of(None), [1, 1001, 2001, 3001]);
    assert!(of(Some("c")).is_empty());
}

#[test]
fn says_why() {
    let mut index = whole(&conversations()[0]);
    let hit =
        rank(&mut index, "What is my dog called?").into_iter().find(|hit| hit.seq == 0).unwrap();
    assert_eq!(hit.why.words[0], ("dog".to_owned(), 1.));
    let sum: f32 = hit.why.features().iter().map(|(_, share)| share).sum();
    assert!((sum - hit.score).abs() < 1e-4);
    assert!(!format!("{hit:?}").contains("dog"));
}
