//! Members of a team, each with a store of its own, over the real server

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod faults;
mod golden;
mod hidden;
mod home;
mod hostile;
mod house;
mod mallory;
mod members;
mod proxy;
mod restored;
mod sharing;
mod simulation;
mod world;
