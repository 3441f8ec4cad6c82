//! Streams: what each device publishes, and how others read it. A stream is a head, which changes, and segments, which
//! do not.

pub(crate) mod ahead;
pub(crate) mod change;
pub(crate) mod head;
pub(crate) mod objects;
pub(crate) mod reading;
pub(crate) mod segment;
