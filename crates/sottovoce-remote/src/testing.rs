//! For tests: a remote in memory, one with faults, and the rules that every remote keeps.

mod contract;
mod faulty;
mod memory;

pub use contract::remote_contract;
pub use faulty::{Faults, Faulty};
pub use memory::MemoryRemote;
