//! The server: its database, its routes, and what it does with hostile requests and with faults

mod contract;
mod harness;
mod http;
mod isolation;
mod limits;
mod members;
mod records;
mod stored;
