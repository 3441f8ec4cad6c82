//! Programs for developers of this repository: `cargo xtask crash`, `cargo xtask dist` and `cargo xtask release`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to whoever runs it")]

mod crash;
mod dist;
mod release;
mod task;

use std::process::ExitCode;

use task::HELP;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["crash", options @ ..] => crash::Options::parse(options).and_then(|o| crash::run(&o)),
        ["dist", options @ ..] => dist::Options::parse(options).and_then(|o| dist::run(&o)),
        ["release", options @ ..] => release::run(options),
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
