//! Fields that several systems write in the same way.

pub(crate) mod calls;
pub(crate) mod json;
pub(crate) mod notes;
pub(crate) mod time;
pub(crate) mod words;
