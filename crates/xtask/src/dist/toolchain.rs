//! Builds static binaries whose bytes depend on neither folders nor times.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::edition::Edition;
use crate::dist::target::Target;
use crate::task::Result;

/// Between two flags.
const SEPARATOR: &str = "\x1f";

/// Rust's own C library and start of a program; equal functions once, relocations in their short form, and no tables for unwinding, which
/// a program that ends at a panic does not need.
const LINKING: [&str; 6] = [
    "-Clink-self-contained=yes",
    "-Clink-arg=--icf=all",
    "-Clink-arg=--pack-dyn-relocs=relr",
    "-Clink-arg=--no-eh-frame-hdr",
    "-Cforce-unwind-tables=no",
    "-Cllvm-args=-enable-machine-outliner=always",
];

/// What SQLite has that neither imports nor a team's server use: full text, maps, extensions in files, statistics.
const SQLITE: &str = "-USQLITE_ENABLE_FTS3 -USQLITE_ENABLE_FTS3_PARENTHESIS -USQLITE_ENABLE_FTS5 -USQLITE_ENABLE_RTREE \
    -USQLITE_ENABLE_DBSTAT_VTAB -USQLITE_ENABLE_STAT4 -USQLITE_SOUNDEX -USQLITE_ENABLE_API_ARMOR -USQLITE_ENABLE_COLUMN_METADATA \
    -USQLITE_ENABLE_LOAD_EXTENSION -DSQLITE_OMIT_LOAD_EXTENSION";

/// The C compiler that Zig is, in the version that `packaging/zig.txt` pins, beside Rust's own linker and C library.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// The folder for what is installed.
    tools: PathBuf,
    zig: PathBuf,
}

impl Toolchain {
    /// Installs it below `folder`, unless it is there already.
    pub(crate) fn install(root: &Path, folder: &Path) -> Result<Self> {
        let pinned = root.join("packaging/zig.txt");
        let (tools, seal) = (folder.join("tools"), folder.join("tools/installed.txt"));
        let python = tools.join("bin/python");
        if fs::read(&seal).ok() != Some(fs::read(&pinned)?) {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&tools))?;
            let pip = "-m pip install -q --disable-pip-version-check --require-hashes -r";
            run(Command::new(&python).args(pip.split(' ')).arg(&pinned))?;
            fs::copy(&pinned, &seal)?;
        }
        let find =
            "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name('zig'))";
        let zig = output(Command::new(python).args(["-c", find]))?.trim().into();
        Ok(Self { tools, zig })
    }

    /// Builds the command line in the source folder `root`. Returns the binary's path.
    pub(crate) fn build(
        &self,
        root: &Path,
        folder: &Path,
        target: Target,
        edition: Edition,
    ) -> Result<PathBuf> {
        if let Some(rustup) = find("rustup") {
            run(Command::new(rustup).args(["target", "add", target.triple()]).current_dir(root))?;
        }
        let triple = target.triple().replace('-', "_");
        let zig = self.zig.display();
        // The compiler's library adds a name of the target that Zig does not know.
        let compiler = self.program(
            &format!("cc-{}", target.name()),
            &format!(
                "for argument; do\n    shift\n    case $argument in --target=*) ;; *) set -- \"$@\" \"$argument\" ;; esac\ndone\n\
                 exec '{zig}' cc -target {}-linux-musl -fno-sanitize=all \"$@\"\n",
                target.name()
            ),
        )?;
        let archiver = self.program("ar", &format!("exec '{zig}' ar \"$@\"\n"))?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args("build --locked --profile dist -p sottovoce-cli --target".split(' '));
        cargo.arg(target.triple()).args(edition.features()).current_dir(root);
        cargo
            .env(format!("CC_{triple}"), compiler)
            .env(format!("AR_{triple}"), archiver)
            .env(format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase()), "rust-lld")
            .env("LIBSQLITE3_FLAGS", SQLITE)
            .env("CARGO_TARGET_DIR", folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags(root, folder)?);
        cargo.env("CARGO_INCREMENTAL", "0").env_remove("RUSTFLAGS");
        // Nothing that is compiled tells the time. With it, C code would be compiled again for each commit.
        cargo.env_remove("SOURCE_DATE_EPOCH");
        run(&mut cargo)?;
        let name = folder.join(edition.name()).with_extension(target.name());
        fs::copy(folder.join(target.triple()).join("dist/sottovoce"), &name)?;
        Ok(name)
    }

    /// A shell's program with these lines.
    fn program(&self, name: &str, lines: &str) -> Result<PathBuf> {
        let path = self.tools.join(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }
}

/// What the Rust compiler is told: how to link, what makes the program smaller, and what its folders are called in it.
fn flags(root: &Path, folder: &Path) -> Result<OsString> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let cargo_home = cargo_home.ok_or("neither CARGO_HOME nor HOME is set")?;
    let mut flags = OsString::from(LINKING.join(SEPARATOR));
    flags.push(SEPARATOR);
    flags.push("-Clink-arg=-T");
    flags.push(root.join("packaging/no-unwinding.ld"));
    // Of two that fit, the later one applies.
    for (at, name) in [(root, "/sottovoce"), (&*cargo_home, "/cargo"), (folder, "/target")] {
        flags.push(SEPARATOR);
        flags.push("--remap-path-prefix=");
        flags.push(at);
        flags.push("=");
        flags.push(name);
    }
    Ok(flags)
}

/// Seconds since 1970 that all files are dated with: `SOURCE_DATE_EPOCH`, or when the commit was made.
pub(crate) fn time(root: &Path) -> Result<u64> {
    let given = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(given) => given,
        Err(_) => {
            output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?
        }
    };
    Ok(given.trim().parse().map_err(|_| "SOURCE_DATE_EPOCH is not a number of seconds")?)
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(())
}

/// What the command prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {told}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Where a program is, if it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}
