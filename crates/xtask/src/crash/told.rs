//! What a killed process had acknowledged.

/// The task of a process that will be killed.
pub(crate) const WORK: &str = "__work";

/// What a process has acknowledged, as it reports on its output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The highest acknowledged number.
    pub(crate) kept: Option<u64>,
    pub(crate) forgot: bool,
    pub(crate) document: Option<u64>,
    pub(crate) key: Option<String>,
    pub(crate) done: bool,
}

impl Told {
    /// Reads a report, also inside a line of a trace. Returns whether there was one.
    pub(crate) fn hear(&mut self, line: &str) -> bool {
        let Some((_, what)) = line.split_once('@') else {
            return false;
        };
        let what = what.split(['\\', '"', '\n']).next().unwrap_or_default();
        match what.split_once(' ').unwrap_or((what, "")) {
            ("kept", seq) => self.kept = seq.parse().ok(),
            ("forgot", _) => self.forgot = true,
            ("document", number) => self.document = number.parse().ok(),
            ("key", key) => self.key = Some(key.to_owned()),
            ("done", _) => self.done = true,
            _ => return false,
        }
        true
    }
}
