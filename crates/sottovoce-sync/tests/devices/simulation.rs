//! Several devices with real stores, a remote with faults, and a person who talks to all of them: whatever happens, in
//! the end all devices have the same, nothing is there twice, nothing that a device has or has published is lost, and what
//! was forgotten stays so.
//!
//! `SIMULATION_SEEDS=10000` tries more seeds than the usual 100, `SIMULATION_SEED=7` that one alone, both as many from there.

mod action;
mod contents;
mod shrink;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use action::Action;
pub(crate) use action::Random;
use world::World;

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// With how many seeds fewer actions are tried: leaving one out moves all faults behind it.
const TRIES: u64 = 20;

#[test]
fn whatever_happens_all_devices_end_with_the_same() {
    let first = number("SIMULATION_SEED");
    let count = number("SIMULATION_SEEDS").unwrap_or(if first.is_some() { 1 } else { 100 });
    let seeds = first.unwrap_or(0)..first.unwrap_or(0) + count;
    let next = AtomicU64::new(seeds.start);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let Some(failure) = try_seed(seed) {
                        eprintln!("{failure}\n");
                        failures.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    println!("{} seeds: {}", seeds.end - seeds.start, world::counts());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "these seeds fail: {failures:?}");
}

/// What goes wrong with a seed, and by which actions.
fn try_seed(seed: u64) -> Option<String> {
    let actions = action::choose(&mut Random::new(seed));
    let failure = run(seed, &actions).err()?;
    eprintln!("seed {seed}: {failure}\nof {} actions; shrinking", actions.len());
    let (actions, failure) = shrink::shrink(actions, failure, |actions| fails(seed, actions));
    let actions: Vec<String> = actions.iter().map(|action| format!("{action:?}")).collect();
    Some(format!("seed {seed}: {failure}\nwith\n{}", actions.join("\n")))
}

/// How some actions fail with this seed, or with one of those that are tried for it.
fn fails(seed: u64, actions: &[Action]) -> Option<String> {
    let seeds = std::iter::once(seed).chain((1..TRIES).map(|more| seed * 1000 + more));
    seeds.into_iter().find_map(|seed| run(seed, actions).err())
}

fn run(seed: u64, actions: &[Action]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed).await;
        for action in actions {
            world.act(action).await?;
        }
        world.settle().await
    })
}
