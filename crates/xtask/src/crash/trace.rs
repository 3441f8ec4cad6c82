//! Traces a process and stops it after each system call that changes the disk.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::crash::told::{Told, WORK};
use crate::task::Result;

/// The calls that change the disk, and `write`, which acknowledges. Not every machine has all of them.
const CALLS: &str = "?mkdir,mkdirat,openat,write,writev,pwrite64,ftruncate,fallocate,?rename,renameat,renameat2,?link,\
     linkat,?unlink,unlinkat,copy_file_range";
const SYNCS: &str = "fsync,fdatasync";
const HINTS: &str = "fadvise64";

pub(crate) fn is_possible() -> bool {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

pub(crate) struct Trace {
    strace: Child,
    lines: Lines<BufReader<ChildStderr>>,
    folder: String,
    /// The last call of each thread.
    calls: HashMap<String, String>,
    /// The thread whose call stopped it.
    stopping: Option<String>,
    stopped: Option<Pid>,
    process: Option<Pid>,
    pub(crate) told: Told,
    /// Output that is not part of the trace.
    said: Vec<String>,
}

impl Trace {
    /// Starts the process of a step on a root, and stops it at changes below a folder. With `lie`, the fsync of that
    /// number, from 1, does nothing and reports success.
    pub(crate) fn start(
        step: &str,
        root: &Path,
        folder: &Path,
        lie: Option<usize>,
    ) -> Result<Self> {
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-s", "200", "-o", "/dev/stderr"]);
        command.arg(format!("--trace={CALLS},{SYNCS},{HINTS}"));
        command.arg(format!("--inject={CALLS}:signal=SIGSTOP"));
        match lie {
            None => command.arg(format!("--inject={SYNCS}:signal=SIGSTOP")),
            Some(when) => {
                command.arg(format!("--inject={SYNCS}:retval=0:signal=SIGSTOP:when={when}"));
                // A hint to drop a file from the cache makes the system write it first, which would act as an fsync.
                command.arg(format!("--inject={HINTS}:retval=0"))
            }
        };
        command.arg(std::env::current_exe()?).args([WORK, step]).arg(root);
        let mut strace = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("strace: {error}"))?;
        let lines = strace.stderr.take().ok_or("strace has no output")?;
        Ok(Self {
            strace,
            lines: BufReader::new(lines).lines(),
            folder: folder.display().to_string(),
            calls: HashMap::new(),
            stopping: None,
            stopped: None,
            process: None,
            told: Told::default(),
            said: Vec::new(),
        })
    }

    /// Continues to the next call that changes something below the folder or acknowledges; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(stopped) = self.stopped.take() {
                kill_process(stopped, Signal::CONT)?;
            }
            let Some(line) = self.lines.next().transpose()? else {
                return Ok(None);
            };
            let Some(call) = self.hear(&line)? else {
                continue;
            };
            let acknowledged = self.told.hear(&call);
            let changes = !call.starts_with("openat(") || call.contains("O_CREAT");
            if acknowledged || call.contains(&self.folder) && changes {
                return Ok(Some(shortened(&call.replace(&self.folder, ""))));
            }
        }
    }

    /// The call after which it stopped.
    fn hear(&mut self, line: &str) -> Result<Option<String>> {
        let (thread, what) = line.split_once(' ').unwrap_or_default();
        let (thread, what) = (thread.to_owned(), what.trim_start());
        if !thread.starts_with(|c: char| c.is_ascii_digit()) {
            self.said.push(line.to_owned());
            return Ok(None);
        }
        if self.process.is_none() {
            self.process = Pid::from_raw(thread.parse()?);
        }
        if what.starts_with("--- SIGSTOP ") {
            self.stopping = Some(thread);
        } else if what.starts_with("--- stopped by SIGSTOP") {
            if self.stopping.as_ref() == Some(&thread) {
                self.stopping = None;
                self.stopped = Pid::from_raw(thread.parse()?);
                return Ok(self.calls.get(&thread).cloned());
            }
        } else if let Some(rest) = what.strip_prefix("<... ") {
            let begun = self.calls.entry(thread).or_default();
            begun.push_str(rest.split_once('>').map_or("", |(_, rest)| rest));
        } else if !what.starts_with("---") && !what.starts_with("+++") {
            self.calls.insert(thread, what.to_owned());
        }
        Ok(None)
    }

    /// Waits for its end, which must not have come early.
    pub(crate) fn finish(mut self) -> Result<()> {
        while self.next()?.is_some() {}
        let status = self.strace.wait()?;
        if self.told.done {
            return Ok(());
        }
        Err(format!("the process ended with {status}: {}", self.said.join("\n")).into())
    }
}

/// A call without the written bytes, which are unreadable.
fn shortened(call: &str) -> String {
    let Some((before, rest)) = call.split_once("\"{") else { return call.to_owned() };
    format!("{before}…{}", rest.rsplit_once('"').map_or("", |(_, after)| after))
}

impl Drop for Trace {
    fn drop(&mut self) {
        if let Some(process) = self.process {
            let _ = kill_process(process, Signal::KILL);
        }
        let _ = self.strace.wait();
    }
}
