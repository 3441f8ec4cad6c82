//! What is told while it runs, and at the end.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use crate::crash::cut::Power;
use crate::crash::removal::{Came, Removal};

/// A row of the table at the end.
#[derive(Debug, Default)]
pub(crate) struct Line {
    name: &'static str,
    ends: [usize; 3],
    pub(crate) removed: usize,
    pub(crate) noticed: usize,
    pub(crate) seconds: f64,
}

impl Line {
    pub(crate) fn of(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    pub(crate) fn count(&mut self, power: Power, ends: usize) {
        for (count, _) in self.ends.iter_mut().zip(Power::ALL).filter(|(_, p)| *p == power) {
            *count += ends;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Report {
    began: Instant,
    lines: Vec<Line>,
    removals: Vec<Removal>,
    failures: Vec<String>,
    skipped: Vec<String>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            lines: Vec::new(),
            removals: Vec::new(),
            failures: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Says what is being done, in one line that the next one replaces.
    pub(crate) fn progress(&self, what: &str) {
        let seconds = self.began.elapsed().as_secs();
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{seconds:>4} s  {what}");
            let _ = std::io::stderr().flush();
        }
    }

    fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }

    pub(crate) fn skip(&mut self, what: &str) {
        self.clear();
        eprintln!("SKIPPED: {what}");
        self.skipped.push(what.to_owned());
    }

    pub(crate) fn fail(&mut self, what: &str) {
        self.clear();
        eprintln!("FAILED: {what}");
        self.failures.push(what.to_owned());
    }

    pub(crate) fn removed(&mut self, removal: Removal) {
        self.removals.push(removal);
    }

    pub(crate) fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Prints everything; whether it all held.
    pub(crate) fn finish(self) -> bool {
        self.clear();
        for removal in &self.removals {
            println!("{removal}");
        }
        for line in &self.lines {
            println!("{line:?}");
        }
        println!("{} s", self.began.elapsed().as_secs());
        self.failures.is_empty()
            && self.removals.iter().all(|removal| !matches!(removal.came, Came::Unnoticed))
    }
}
