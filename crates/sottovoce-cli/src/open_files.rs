//! How many files the program may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More would not be used.
const MOST: u64 = 65_536;

/// Raises the limit as far as the system allows it, but not above 65,536. The usual one, 1,024, is meant for programs that
/// cannot use more.
pub(crate) fn allow_more() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MOST, |maximum| maximum.min(MOST));
    if current.is_some_and(|current| current < wanted) {
        // What is not allowed stays as it is. Stores keep fewer files open then.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// The limit; `None` without one.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
