//! Members who say, forget, rename, restore, shut out, let in and sync at random, one of them hostile, over a network that loses requests
//! and answers, with two servers on one database, or one that is put back

use std::collections::BTreeSet;

use sottovoce_team::{Level, TeamError};

use crate::house::PLANS;
use crate::world::{OLDER, Standing, World};

/// How many runs there are unless `SIMULATION_SEEDS` says otherwise. `SIMULATION_SEED` is the first one.
const SEEDS: u64 = 6;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[tokio::test]
async fn whatever_happens_all_members_hold_the_same_and_nothing_is_lost_or_comes_back() {
    let first = number("SIMULATION_SEED", 0);
    for seed in first..first + number("SIMULATION_SEEDS", SEEDS) {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut world = World::new(seed).await;
    for step in 0..40 {
        world.step = step;
        let who = world.random.below(4) as usize;
        match world.random.below(24) {
            0..6 => world.says(who).await,
            6..8 => world.forgets(who).await,
            8 => world.all[who].person.sets_title(&format!("title {step}")).await,
            // In every second run the server is put back to older states, and in the others the members' stores are.
            9 | 22 | 23 if world.is_server_restored => match world.random.below(3) {
                0 => world.house.save_server().await,
                1 => world.restore_server().await,
                _ => world.house.another_server().await,
            },
            9 if world.random.below(2) == 0 => world.save(who),
            9 => world.restore(who),
            // Everybody's clock is set, in either direction.
            10 => world.house.later(world.random.below(9_000) as i64 - 3_000),
            11 | 12 if who > 0 && world.needs_link(who) => world.lets_in(who).await,
            11 if who > 0 => world.shuts_out(who).await,
            13 | 14 if world.is_hostile => world.attack().await,
            15 => world.all_sync_at_once(who).await,
            _ => {
                world.disturb(true);
                world.syncs(who).await;
            }
        }
    }
    world.step = 40;
    settle(&mut world).await;
    check(&world).await;
}

/// Lets everybody in, and exchanges until nobody should find anything wrong any more.
async fn settle(world: &mut World) {
    let rounds = if world.is_server_restored { 7 } else { 4 };
    for round in 0..rounds {
        for who in 0..world.all.len() {
            if world.needs_link(who) {
                world.lets_in(who).await;
            }
            let mut report = world.all[who].person.teams.sync(|_| {}).await;
            // A server that was put back may not know of the last link.
            let is_out = matches!(report, Err(TeamError::NotAMember { .. }));
            if is_out || world.all[who].person.level().await < Some(Level::Write) {
                assert!(world.is_server_restored, "{} {who}", world.at());
                world.all[who].standing = Standing::WithoutGrant;
                world.lets_in(who).await;
                report = world.all[who].person.teams.sync(|_| {}).await;
            }
            let report = report.unwrap();
            if round + 2 >= rounds {
                let at = format!("{}, round {round}, {who}", world.at());
                world.check_problems(&report.problems, &world.allowed_in_the_end(false), &at);
            }
            world.synced(who, Ok(report)).await;
        }
    }
}

/// What all hold, and what somebody gets who comes in now.
async fn check(world: &World) {
    let at = world.at();
    let kept = |words: Vec<String>| -> BTreeSet<String> {
        words.into_iter().filter(|words| !world.spoiled.contains(words)).collect()
    };
    let anna = &world.all[0].person;
    let eve = world.house.invited(anna, "Eve", Level::Write).await;
    for _ in 0..2 {
        let report = eve.teams.sync(|_| {}).await.unwrap();
        world.check_problems(
            &report.problems,
            &world.allowed_in_the_end(true),
            &format!("{at}, Eve"),
        );
        assert!(!report.problems.iter().any(|problem| problem.to_string().contains(OLDER)));
    }
    let held = kept(anna.words(PLANS).await);
    let title = anna.title().await;
    for person in world.all.iter().map(|one| &one.person).chain([&eve]) {
        let theirs = kept(person.words(PLANS).await);
        // What a hostile member keeps in its own store is its own affair.
        match person.name == "Mallory" && world.is_hostile {
            true => assert!(held.is_subset(&theirs), "{at}, Mallory"),
            false => assert_eq!(theirs, held, "{at}, {}", person.name),
        }
        if !world.is_title_spoiled {
            assert_eq!(person.title().await, title, "{at}, {}", person.name);
        }
    }
    let must: BTreeSet<String> = world.said.difference(&world.forgotten).cloned().collect();
    let must: BTreeSet<String> = must.difference(&world.lost).cloned().collect();
    let lost: Vec<&String> =
        must.difference(&held).filter(|w| !world.spoiled.contains(*w)).collect();
    assert!(lost.is_empty(), "{at}: {lost:?} are lost");
    assert!(held.is_subset(&world.said), "{at}");
    assert!(held.is_disjoint(&world.told), "{at}: forgotten words are there");
    // Everybody hears of what comes next.
    anna.says(PLANS, "the end").await;
    anna.sets_title("the end").await;
    anna.teams.sync(|_| {}).await.unwrap();
    for person in world.all.iter().map(|one| &one.person).chain([&eve]) {
        person.teams.sync(|_| {}).await.unwrap();
        assert!(person.words(PLANS).await.contains(&"the end".to_owned()), "{at}, {}", person.name);
        assert_eq!(person.title().await.as_deref(), Some("the end"), "{at}, {}", person.name);
    }
}
