//! Several devices with real stores, a remote with faults, and a person who talks to all of them: whatever happens, in
//! the end all devices have the same, nothing is there twice, nothing is lost, and what was forgotten stays so.
//!
//! `SIMULATION_SEEDS=10000` tries more seeds than the usual 300, `SIMULATION_SEED=7` that one alone, both as many from there.

mod action;
mod shrink;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use action::Action;
pub(crate) use action::Random;
use world::World;

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_happens_all_devices_end_with_the_same() {
    let first = number("SIMULATION_SEED");
    let count = number("SIMULATION_SEEDS").unwrap_or(if first.is_some() { 1 } else { 300 });
    let seeds = first.unwrap_or(0)..first.unwrap_or(0) + count;
    let next = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    try_seed(seed);
                }
            });
        }
    });
    println!("{} seeds: {}", seeds.end - seeds.start, world::counts());
}

fn try_seed(seed: u64) {
    let actions = action::choose(&mut Random::new(seed));
    let Err(failure) = run(seed, &actions) else { return };
    eprintln!("seed {seed}: {failure}\nof {} actions; shrinking", actions.len());
    let (actions, failure) = shrink::shrink(actions, failure, |actions| run(seed, actions).err());
    let actions: Vec<String> = actions.iter().map(|action| format!("{action:?}")).collect();
    panic!("seed {seed}: {failure}\nwith\n{}", actions.join("\n"));
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
