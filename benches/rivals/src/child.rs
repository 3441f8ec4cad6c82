//! The same program as a child process: one that appends on request, and one that reports its memory.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::contender::{Kind, Outcome, crossing};
use crate::figures::TAIL;
use crate::talk::Talk;

/// The argument that starts a child.
pub(crate) const CHILD: &str = "--child";

/// The work of a child.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let [task, kind, folder, messages, per_day] = arguments else {
        return Err("a child is started by the program itself".into());
    };
    let kind = Kind::by_code(kind).ok_or("an unknown contender")?;
    let folder = Path::new(folder);
    let talk = Talk { messages: messages.parse()?, per_day: per_day.parse()? };
    match task.as_str() {
        "append" => append(kind, folder, talk),
        _ => tell_memory(kind, folder),
    }
}

fn start(task: &str, kind: Kind, folder: &Path, talk: Talk) -> Outcome<Child> {
    let child = Command::new(std::env::current_exe()?)
        .args([CHILD, task, kind.code()])
        .arg(folder)
        .args([talk.messages.to_string(), talk.per_day.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// Appends the message at each place from standard input, and reports it.
fn append(kind: Kind, folder: &Path, talk: Talk) -> Outcome<()> {
    let mut contender = kind.open(folder)?;
    for line in io::stdin().lines() {
        contender.append(talk.message(line?.trim().parse()?)?)?;
        println!("done");
        io::stdout().flush()?;
    }
    Ok(())
}

/// Another process that has the same store open.
pub(crate) struct Neighbour {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Neighbour {
    pub(crate) fn start(kind: Kind, folder: &Path, talk: Talk) -> Outcome<Self> {
        let mut child = start("append", kind, folder, talk)?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe to a child")?);
        Ok(Self { child, requests, answers })
    }

    /// Appends, and returns when that is done.
    pub(crate) fn append(&mut self, place: usize) -> Outcome<()> {
        writeln!(self.requests.as_ref().ok_or("no pipe to a child")?, "{place}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        if answer.trim() == "done" {
            Ok(())
        } else {
            Err("another process could not append".into())
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        drop(self.requests.take());
        // It ends with its input. Nothing depends on one that does not.
        self.child.wait().ok();
    }
}

/// The most bytes that opening and the first tail add to a fresh process.
pub(crate) struct Memory {
    /// Private memory.
    pub(crate) own: f64,
    /// With the pages of the program and its libraries that were first used, which belong to the page cache.
    pub(crate) resident: f64,
}

pub(crate) fn memory_of_opening(kind: Kind, folder: &Path, talk: Talk) -> Outcome<Memory> {
    let output = start("memory", kind, folder, talk)?.wait_with_output()?;
    if !output.status.success() {
        return Err("a child could not tell its memory".into());
    }
    let text = String::from_utf8(output.stdout)?;
    let (own, resident) = text.trim().split_once(' ').ok_or("a child told no memory")?;
    Ok(Memory { own: own.parse()?, resident: resident.parse()? })
}

fn tell_memory(kind: Kind, folder: &Path) -> Outcome<()> {
    // A host already has a runtime and a blocking thread.
    crossing()?;
    let (before, mapped_before) = (memory("VmRSS:")?, memory("RssFile:")?);
    // Resets the peak of memory so far.
    fs::write("/proc/self/clear_refs", "5")?;
    let mut contender = kind.open(folder)?;
    let words = contender.tail(TAIL)?;
    // The system keeps no peaks of the parts, but mapped pages stay once they are there.
    let resident = memory("VmHWM:")?.saturating_sub(before);
    let own = resident.saturating_sub(memory("RssFile:")?.saturating_sub(mapped_before));
    drop(words);
    println!("{} {}", own * 1024, resident * 1024);
    Ok(())
}

/// In KiB.
fn memory(field: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("the system does not tell a process's memory")?.parse()?)
}
