//! Programs for developers of this repository: `cargo xtask crash`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to whoever runs it")]

mod crash;

use std::error::Error;
use std::process::ExitCode;

/// A failure of the task itself, as opposed to its findings.
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const HELP: &str = "\
cargo xtask crash [--quick] [--rounds N] [--only NAME]...

Kills the store and cuts its power at every step, and shows that none of its fsyncs may be left out.

  --quick       fewer random kills, and fsyncs removed only from the shorter steps
  --rounds N    how many processes are killed at random moments; 1000 unless told otherwise, 100 when quick
  --only NAME   only this step, or `kills`; may be given several times
  --list        the steps

Needs Linux and strace; the power cuts need root, e2fsprogs and loop devices. Says what it had to skip.
Ends with 0 if everything held, 1 if anything did not, 2 if it could not do its work.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["crash", options @ ..] => crash::Options::parse(options).and_then(|o| crash::run(&o)),
        [crash::WORK, what, folder] => crash::work(what, folder.as_ref()).map(|()| true),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => Err(format!("no such task\n\n{HELP}").into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
