//! Crash tests: kills and power cuts at every system call that changes the disk.

mod beside;
mod check;
mod cut;
mod disk;
mod house;
mod index;
mod kills;
mod removal;
mod report;
mod shared;
mod step;
mod told;
mod trace;
mod work;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cut::{Bench, End};
use disk::Kind;
use report::{Line, Report};
use step::{STEPS, Step};
pub(crate) use told::WORK;

use crate::task::{HELP, Result};

/// Set for the process with its own mount namespace, so that its mounts end with it.
const APART: &str = "SOTTOVOCE_CRASH_APART";

#[derive(Debug, Default)]
pub(crate) struct Options {
    is_quick: bool,
    rounds: Option<usize>,
    only: Vec<String>,
    lists: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument {
                "--quick" => options.is_quick = true,
                "--list" => options.lists = true,
                "--rounds" => options.rounds = Some(value()?.parse()?),
                "--only" => options.only.push((*value()?).to_owned()),
                _ => return Err(format!("no such option: {argument}\n\n{}", HELP).into()),
            }
        }
        let known = |name: &String| name == kills::NAME || STEPS.iter().any(|s| s.name == *name);
        match options.only.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("no such step: {name}; see --list").into()),
            None => Ok(options),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.is_quick { 100 } else { 1000 })
    }
}

/// Runs the requested steps. Returns whether all checks passed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if options.lists {
        let names = STEPS.iter().map(|step| step.name).chain([kills::NAME]);
        names.for_each(|name| println!("{name}"));
        return Ok(true);
    }
    if std::env::var_os(APART).is_none() && may_mount() {
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .arg(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .env(APART, "1")
            .status()?;
        return match status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(format!("it ended with {status}").into()),
        };
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let mut report = Report::new();
    if options.wants(kills::NAME) {
        kills::run(options.rounds(), &mut report)?;
    }
    let steps: Vec<&Step> = STEPS.iter().filter(|step| options.wants(step.name)).collect();
    if !steps.is_empty() {
        if trace::is_possible() {
            run_steps(&steps, options, &mut report)?;
        } else {
            report.skip("every step: strace is not installed, or not allowed here");
        }
    }
    Ok(report.finish())
}

fn run_steps(steps: &[&Step], options: &Options, report: &mut Report) -> Result<()> {
    let is_apart = std::env::var_os(APART).is_some();
    if !is_apart {
        report.skip("power cuts and removed fsyncs: they need root, e2fsprogs and loop devices");
    }
    let kinds = if is_apart { &Kind::ALL[..] } else { &[] };
    let next = Mutex::new(steps.iter().enumerate());
    let report = Mutex::new(report);
    // The threads mostly wait for disks and processes.
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let Some((order, step)) = held(&next).next() else { return Ok(()) };
                let removes = is_apart && !(options.is_quick && step.is_long);
                let line = run_step(step, kinds, removes, &report)?;
                held(&report).add(order, line);
            }
        };
        let working: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        working.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a step has panicked".into()))
        })
    })
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_step(
    step: &Step,
    kinds: &[Kind],
    removes: bool,
    report: &Mutex<&mut Report>,
) -> Result<Line> {
    let began = Instant::now();
    let mut bench = Bench::new(step, kinds)?;
    let mut line = Line::of(step.name);
    let possible = |end: &End| end.cut().is_none_or(|kind| kinds.contains(&kind));
    for end in End::ALL.into_iter().filter(possible) {
        held(report).progress(&format!("{}: {end}", step.name));
        let cuts = bench.cuts(end, None)?;
        line.count(end, cuts.len());
        for cut in &cuts {
            if let Err(violation) = bench.check(cut) {
                let (step, after, kept) = (step.name, &cut.after, cut.told.kept);
                held(report)
                    .fail(&format!("{step}, {end} after {after}, told {kept:?}: {violation}"));
            }
        }
    }
    let progress = |what: &str| held(report).progress(what);
    let removals = if removes { removal::run(&mut bench, &progress)? } else { Vec::new() };
    Ok(line.finish(removals, began.elapsed()))
}

/// The work of a process that will be killed.
pub(crate) fn work(what: &str, folder: &Path) -> Result<()> {
    if what == kills::NAME { kills::work(folder) } else { step::work(what, folder) }
}

/// Whether this user can mount disks, tested with one.
fn may_mount() -> bool {
    let Ok(folder) = tempfile::tempdir() else { return false };
    let image = folder.path().join("image");
    let tried = disk::make(&image, Kind::Ext4)
        .and_then(|()| disk::Mounted::new(&image, Kind::Ext4, &folder.path().join("at")));
    tried.is_ok()
}
