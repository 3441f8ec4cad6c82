//! The server: its database, its routes, and what it does with hostile requests and with faults

mod contract;
mod description;
mod faults;
mod harness;
mod hidden;
mod http;
mod isolation;
mod limits;
mod members;
mod records;
mod stored;
