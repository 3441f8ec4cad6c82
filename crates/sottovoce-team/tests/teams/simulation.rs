//! Members who say, forget, rename, restore and sync at random, over a network that loses requests and answers

use std::collections::BTreeSet;

use sottovoce::ConversationStore;
use sottovoce_team::Level;

use crate::house::{House, PLANS, Person};
use crate::proxy::Fate;

/// How many runs there are unless `SIMULATION_SEEDS` says otherwise. `SIMULATION_SEED` is the first one.
const SEEDS: u64 = 6;

/// Random numbers of xorshift64*, by Vigna.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % most
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// What must be there in the end, and what must not.
#[derive(Default)]
struct Expected {
    said: BTreeSet<String>,
    forgotten: BTreeSet<String>,
    /// Those of which others have heard.
    told: BTreeSet<String>,
    /// Said since a store was saved that was restored before it synced: nobody else has it.
    lost: BTreeSet<String>,
}

#[tokio::test]
async fn whatever_happens_all_members_hold_the_same_and_nothing_is_lost_or_comes_back() {
    let first = number("SIMULATION_SEED", 0);
    for seed in first..first + number("SIMULATION_SEEDS", SEEDS) {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut house = House::new().await;
    // In every second run the server is put back to older states, and in the others the members' stores are.
    let is_server_restored = seed % 2 == 1;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let carl = house.guest(&anna, "Carl", Level::Write).await;
    let people = [anna, ben, carl];
    house.save_server().await;
    let mut expected = Expected::default();
    expected.said.insert("We meet on Monday".to_owned());
    // What each has said since it was saved and not exchanged.
    let mut unsent: [BTreeSet<String>; 3] = Default::default();
    people.iter().for_each(Person::save);
    let mut since_saved: [BTreeSet<String>; 3] = Default::default();
    let mut untold: [BTreeSet<String>; 3] = Default::default();
    for step in 0..40 {
        let who = random.below(3) as usize;
        let person = &people[who];
        match random.below(10) {
            0..4 => {
                let words = format!("{} {step}", person.name);
                person.says(PLANS, &words).await;
                expected.said.insert(words.clone());
                unsent[who].insert(words.clone());
                since_saved[who].insert(words);
            }
            4 => {
                let there = person.words(PLANS).await;
                if there.len() > 2 {
                    let at = random.below(there.len() as u64) as usize;
                    person.forgets(PLANS, &there[at]).await;
                    expected.forgotten.insert(there[at].clone());
                    untold[who].insert(there[at].clone());
                }
            }
            5 => {
                let title = format!("title {step}");
                let change = move |profile: &mut sottovoce::store::Profile| {
                    profile.rename(Some(title.clone()));
                };
                person.store(PLANS).await.change_profile(Box::new(change)).await.unwrap();
            }
            6 if is_server_restored => match random.below(4) {
                0 => house.save_server().await,
                1 => house.restore_server().await,
                2 => house.another_server().await,
                // The server's clock is set, in either direction.
                _ => house.later(random.below(9_000) as i64 - 3_000),
            },
            6 if random.below(3) == 0 => {
                if random.below(2) == 0 {
                    person.save();
                    since_saved[who].clear();
                } else {
                    // Its own forgettings that nobody heard of are undone too.
                    person.restore();
                    let lost = unsent[who].intersection(&since_saved[who]);
                    expected.lost.extend(lost.cloned());
                    unsent[who].clear();
                    untold[who].clear();
                }
            }
            _ => {
                let (at, kind) = (random.below(12), random.below(4));
                let mut count = 0;
                house.proxy.decide(move |_| {
                    count += 1;
                    match (count == at, kind) {
                        (false, _) => Fate::Pass,
                        (_, 0) => Fate::Lose,
                        (_, 1) => Fate::LoseAnswer,
                        (_, 2) => Fate::CutAnswer,
                        _ => Fate::Die,
                    }
                });
                if let Some(Ok(report)) = person.sync_or_die().await {
                    let is_whole = report.problems.is_empty() || is_server_restored;
                    assert!(is_whole, "seed {seed}, step {step}: {:?}", report.problems);
                    expected.told.append(&mut untold[who]);
                    unsent[who].clear();
                }
                house.proxy.calm();
            }
        }
    }
    let rounds = if is_server_restored { 6 } else { 3 };
    for round in 0..rounds {
        for person in &people {
            let report = person.teams.sync(|_| {}).await.unwrap();
            let is_whole = report.problems.is_empty() || is_server_restored && round < 3;
            assert!(is_whole, "seed {seed}, {}: {:?}", person.name, report.problems);
        }
    }
    let held = people[0].words(PLANS).await;
    let title = people[0].store(PLANS).await.profile().await.unwrap().title.clone();
    for person in &people {
        assert_eq!(person.words(PLANS).await, held, "seed {seed}, {}", person.name);
        let profile = person.store(PLANS).await.profile().await.unwrap();
        assert_eq!(profile.title, title, "seed {seed}, {}", person.name);
    }
    let held: BTreeSet<String> = held.into_iter().collect();
    let must: BTreeSet<String> = expected
        .said
        .difference(&expected.forgotten)
        .filter(|words| !expected.lost.contains(*words))
        .cloned()
        .collect();
    assert!(must.is_subset(&held), "seed {seed}: {:?} are lost", must.difference(&held));
    assert!(held.is_subset(&expected.said), "seed {seed}");
    assert!(held.is_disjoint(&expected.told), "seed {seed}: forgotten words are there");
}
