//! Programs for developers of this repository: `cargo xtask crash` and `cargo xtask dist`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to whoever runs it")]

mod crash;
mod dist;

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

cargo xtask dist [--target NAME]... [--whole] [--small] [--out FOLDER] [--program FILE] [--prove]

Makes what a release consists of: static binaries, archives, Debian packages, images for containers, bills of materials and sums.

  --target NAME  x86_64 or aarch64; both unless told otherwise
  --whole        the whole program, as without an option
  --small        store, prompt, turn, and recall by words alone
  --out FOLDER   where the files go; target/dist/release unless told otherwise
  --prove        builds everything again in another folder and compares the bytes, then tries the files with .ci/dist
  --program FILE packs this program of this machine, such as target/debug/sottovoce, instead of building: to try the rest

Needs Linux on x86-64, Python with venv, and rustup or the target's standard library.

Both end with 0 if everything held, 1 if anything did not, 2 if they could not do their work.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["crash", options @ ..] => crash::Options::parse(options).and_then(|o| crash::run(&o)),
        ["dist", options @ ..] => dist::Options::parse(options).and_then(|o| dist::run(&o)),
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
