//! Progress and final report.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::crash::cut::End;
use crate::crash::removal::{Came, Removal};

/// A row of the final table.
#[derive(Debug, Default)]
pub(crate) struct Line {
    name: &'static str,
    /// The number of different states for each ending.
    ends: [usize; End::ALL.len()],
    removals: Vec<Removal>,
    took: Duration,
}

impl Line {
    pub(crate) fn of(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    pub(crate) fn finish(self, removals: Vec<Removal>, took: Duration) -> Self {
        Self { removals, took, ..self }
    }

    pub(crate) fn count(&mut self, end: End, ends: usize) {
        for (count, _) in self.ends.iter_mut().zip(End::ALL).filter(|(_, e)| *e == end) {
            *count += ends;
        }
    }
}

pub(crate) struct Report {
    began: Instant,
    /// In the order of the steps.
    lines: BTreeMap<usize, Line>,
    kills: Option<String>,
    failures: usize,
    skipped: Vec<String>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            lines: BTreeMap::new(),
            kills: None,
            failures: 0,
            skipped: Vec::new(),
        }
    }

    /// Shows the current work in one line, which the next one replaces.
    pub(crate) fn progress(&self, what: &str) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{:>4} s  {what}", self.began.elapsed().as_secs());
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
        self.failures += 1;
    }

    pub(crate) fn kills(&mut self, rounds: usize, messages: u64, took: Duration) {
        let took = took.as_secs();
        if !std::io::stderr().is_terminal() {
            eprintln!("{rounds} processes killed ({took} s)");
        }
        self.kills = Some(format!("{rounds} processes killed, {messages} messages, {took} s"));
    }

    pub(crate) fn add(&mut self, order: usize, line: Line) {
        for removal in &line.removals {
            if matches!(removal.came, Came::Unnoticed) {
                self.fail(&removal.to_string());
            }
        }
        if !std::io::stderr().is_terminal() {
            eprintln!("{} ({} s)", line.name, line.took.as_secs());
        }
        self.lines.insert(order, line);
    }

    /// Prints the report. Returns whether all checks passed.
    pub(crate) fn finish(self) -> bool {
        self.clear();
        let mut removals = self.lines.values().flat_map(|line| &line.removals).peekable();
        if removals.peek().is_some() {
            println!("\nfsyncs left out, one at a time\n");
            removals.for_each(|removal| println!("  {removal}"));
        }
        if !self.lines.is_empty() {
            println!("\ndifferent states that were left, each opened, checked and written on\n");
            print!("  {:<14}", "step");
            End::ALL.iter().for_each(|end| print!("  {end}"));
            println!("  fsyncs  noticed    took");
            for Line { name, ends, removals, took } in self.lines.values() {
                print!("  {name:<14}");
                for (end, states) in End::ALL.iter().zip(ends) {
                    print!("  {states:>width$}", width = end.to_string().len());
                }
                let noticed = removals.iter().filter(|r| matches!(r.came, Came::Noticed(..)));
                let (all, noticed, took) = (removals.len(), noticed.count(), took.as_secs());
                println!("  {all:>6}  {noticed:>7}  {took:>4} s");
            }
        }
        if let Some(kills) = &self.kills {
            println!("\n{kills}");
        }
        println!();
        self.skipped.iter().for_each(|what| println!("SKIPPED: {what}"));
        let took = self.began.elapsed().as_secs();
        match self.failures {
            0 => println!("everything held ({took} s)"),
            failures => println!("{failures} FAILED ({took} s)"),
        }
        self.failures == 0
    }
}
