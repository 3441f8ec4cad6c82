//! What the tasks share: their help, and what comes of one.

use std::error::Error;

/// A failure of the task itself, as opposed to its findings.
pub(crate) type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

pub(crate) const HELP: &str = "\
cargo xtask crash [--quick] [--rounds N] [--only NAME]...

Kills the store and cuts its power at every step, and shows that none of its fsyncs may be left out.

  --quick       fewer random kills, and fsyncs removed only from the shorter steps
  --rounds N    how many processes are killed at random moments; 1000 unless told otherwise, 100 when quick
  --only NAME   only this step, or `kills`; may be given several times
  --list        the steps

Needs Linux and strace; the power cuts need root, e2fsprogs and loop devices. Says what it had to skip.

cargo xtask dist [--target NAME]... [--small] [--out FOLDER] [--program FILE] [--prove]

Makes what a release consists of: static binaries, archives, Debian packages, images for containers, bills of materials and sums.

  --target NAME  x86_64 or aarch64; both unless told otherwise
  --small        also the small edition: store, prompt, turn, and recall by words alone
  --out FOLDER   where the files go; target/dist/release unless told otherwise
  --prove        builds everything again in another folder and compares the bytes, then tries the files with .ci/dist
  --program FILE packs this program of this machine, such as target/debug/sottovoce, instead of building: to try the rest

Needs Linux on x86-64, Python with venv, and rustup or the target's standard library.

cargo xtask release --repository URL --contact 'NAME <MAIL>' [--sign-with SSH-KEY] [--since FOLDER] [--out FOLDER]

Makes a whole release with packaging/release, whose head explains the options. Ends with 0 if it is made, else with 1.

The others end with 0 if everything held, 1 if anything did not, 2 if they could not do their work.
";
