//! Checks the protocol of sync in every state that two devices and a few copies of them can get into: what a device
//! publishes, what it reads, and what it does when its own stream is not as it left it.
//!
//! `cargo run --release` checks the protocol itself, then the protocol without each of its rules, which must fail.
//! `cargo run --release -- says forgets crashes restores clones rollbacks wipes` checks with other limits. Not in the model:
//! segments, the two slots of a head, settings, several conversations and spaces.

mod device;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use stateright::{Checker, Model};
use world::{Limits, Protocol};

/// Each with one thing that goes wrong beside crashes.
const USUAL: [Limits; 6] = [
    Limits { says: 2, forgets: 1, crashes: 2, restores: 0, clones: 0, rollbacks: 0, wipes: 0 },
    Limits { says: 3, forgets: 1, crashes: 0, restores: 0, clones: 0, rollbacks: 0, wipes: 0 },
    Limits { says: 2, forgets: 1, crashes: 0, restores: 1, clones: 0, rollbacks: 0, wipes: 0 },
    Limits { says: 2, forgets: 1, crashes: 0, restores: 0, clones: 1, rollbacks: 0, wipes: 0 },
    Limits { says: 2, forgets: 1, crashes: 0, restores: 0, clones: 0, rollbacks: 1, wipes: 0 },
    Limits { says: 2, forgets: 1, crashes: 1, restores: 0, clones: 0, rollbacks: 0, wipes: 1 },
];

fn main() -> ExitCode {
    let given: Vec<u8> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let protocol = Protocol::default();
    let holds = match given.as_slice() {
        [says, forgets, crashes, restores, clones, rollbacks, wipes] => holds(&Protocol {
            limits: Limits {
                says: *says,
                forgets: *forgets,
                crashes: *crashes,
                restores: *restores,
                clones: *clones,
                rollbacks: *rollbacks,
                wipes: *wipes,
            },
            ..protocol
        }),
        _ => usual(&protocol),
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The protocol holds with all limits, and each of its rules is needed.
fn usual(protocol: &Protocol) -> bool {
    let all = USUAL.into_iter().all(|limits| holds(&Protocol { limits, ..protocol.clone() }));
    let clones = USUAL[3].clone();
    let restores = USUAL[2].clone();
    let without = [
        ("a new stream", Protocol { renews: false, limits: restores.clone(), ..protocol.clone() }),
        (
            "checking the line",
            Protocol { checks_line: false, limits: clones.clone(), ..protocol.clone() },
        ),
        (
            "publishing what nobody has",
            Protocol { completes: false, limits: restores, ..protocol.clone() },
        ),
    ];
    let needed = without.into_iter().all(|(rule, protocol)| {
        println!("without {rule}:");
        !holds(&protocol)
    });
    if !needed {
        println!("a rule is not needed");
    }
    all && needed
}

fn holds(protocol: &Protocol) -> bool {
    let start = Instant::now();
    let checked = protocol.clone().checker().threads(2).spawn_bfs().join();
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
