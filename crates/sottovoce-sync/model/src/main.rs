//! Checks the protocol of sync in every state that two devices and a few copies of them can get into: what a device
//! publishes, what it reads, and what it does when its own stream is not as it left it.
//!
//! `cargo run --release` checks the protocol without each of its rules, which must fail, then the protocol itself.
//! `cargo run --release -- says forgets crashes restores clones rollbacks wipes removals selections` checks with other limits.
//! Not in the model: segments, the two slots of a head, settings, several conversations, and removals that are interrupted.

mod device;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};
use world::Protocol;

/// How often things happen: says, forgets, crashes, restores, clones, rollbacks, wipes, removals, selections.
const USUAL: [[u8; 9]; 24] = [
    [2, 1, 2, 0, 0, 0, 0, 0, 0],
    [3, 1, 0, 0, 0, 0, 0, 0, 0],
    [2, 1, 0, 1, 0, 0, 0, 0, 0],
    [1, 1, 0, 0, 1, 0, 0, 0, 0],
    [2, 0, 0, 0, 1, 0, 0, 0, 0],
    [2, 1, 0, 0, 0, 1, 0, 0, 0],
    [2, 1, 0, 0, 0, 0, 1, 0, 0],
    // Each two of restores, clones, rollbacks, wipes, removals and selections.
    [1, 1, 0, 1, 0, 0, 1, 0, 0],
    [1, 1, 0, 1, 0, 1, 0, 0, 0],
    [1, 0, 0, 1, 1, 0, 0, 0, 0],
    [1, 0, 0, 0, 1, 1, 0, 0, 0],
    [1, 0, 0, 0, 1, 0, 1, 0, 0],
    [2, 0, 0, 0, 0, 1, 1, 0, 0],
    [2, 1, 1, 0, 0, 0, 0, 1, 0],
    [1, 1, 1, 0, 0, 0, 0, 0, 2],
    [1, 1, 0, 1, 0, 0, 0, 1, 0],
    [1, 0, 0, 0, 1, 0, 0, 1, 0],
    [1, 1, 0, 0, 0, 1, 0, 1, 0],
    [1, 1, 0, 0, 0, 0, 1, 1, 0],
    [1, 1, 0, 1, 0, 0, 0, 0, 2],
    [1, 0, 0, 0, 1, 0, 0, 0, 2],
    [1, 1, 0, 0, 0, 1, 0, 0, 2],
    [1, 1, 0, 0, 0, 0, 1, 0, 2],
    [1, 1, 0, 0, 0, 0, 0, 1, 2],
];

fn main() -> ExitCode {
    let given: Vec<u8> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let is_right = match <[u8; 9]>::try_from(given) {
        Ok(limits) => holds(&Protocol { limits: limits.into(), ..Protocol::default() }),
        Err(_) => usual(),
    };
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The protocol holds, and each of its rules is needed.
fn usual() -> bool {
    let protocol = |limits: [u8; 9]| Protocol { limits: limits.into(), ..Protocol::default() };
    let restored = protocol([2, 1, 0, 1, 0, 0, 0, 0, 0]);
    let without = [
        ("beginning a new stream", Protocol { renews: false, ..restored.clone() }),
        (
            "leaving a stream that another replaces",
            Protocol { moves_on: false, ..protocol([2, 1, 0, 0, 1, 0, 0, 0, 0]) },
        ),
        (
            "checking the line",
            Protocol { checks_line: false, ..protocol([2, 1, 0, 0, 0, 1, 0, 0, 0]) },
        ),
        ("publishing what nobody has", Protocol { completes: false, ..restored }),
        (
            "beginning a new stream when another's went back",
            Protocol { follows: false, ..protocol([2, 0, 0, 1, 0, 0, 1, 0, 0]) },
        ),
        (
            "looking again at what is shared again",
            Protocol { looks_again: false, ..protocol([2, 1, 0, 0, 0, 0, 0, 0, 2]) },
        ),
        (
            "keeping streams with what is shared no more",
            Protocol { keeps: false, ..protocol([1, 1, 0, 1, 0, 1, 0, 0, 2]) },
        ),
    ];
    let unneeded = without.into_iter().filter(|(rule, protocol)| {
        println!("without {rule}:");
        let holds = holds(protocol);
        if holds {
            println!("  nothing goes wrong: the rule is not needed");
        }
        holds
    });
    let are_needed = unneeded.count() == 0;
    let all = USUAL.into_iter().filter(|limits| !holds(&protocol(*limits))).count() == 0;
    are_needed && all
}

fn holds(protocol: &Protocol) -> bool {
    let start = Instant::now();
    let checked =
        protocol.clone().checker().threads(2).finish_when(HasDiscoveries::Any).spawn_bfs().join();
    println!(
        "{:?}: {} states, depth {}, {:.1?}",
        protocol.limits,
        checked.unique_state_count(),
        checked.max_depth(),
        start.elapsed()
    );
    let found = checked.discoveries();
    for (property, path) in &found {
        println!("  violated: {property}\n  by {:?}", path.clone().into_actions());
    }
    found.is_empty()
}
