//! Builds static binaries whose bytes depend on neither folders nor times.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::dist::edition::Edition;
use crate::dist::target::Target;

/// Cargo with Zig's compiler for C and linker, in the versions that `packaging/zig.txt` pins.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// The folder with these tools.
    programs: PathBuf,
}

impl Toolchain {
    /// Installs it below `folder`, unless it is there already.
    pub(crate) fn install(root: &Path, folder: &Path) -> Result<Self> {
        let pinned = root.join("packaging/zig.txt");
        let (tools, seal) = (folder.join("tools"), folder.join("tools/installed.txt"));
        if fs::read(&seal).ok() != Some(fs::read(&pinned)?) {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&tools))?;
            let pip = [
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                "--require-hashes",
                "-r",
            ];
            run(Command::new(tools.join("bin/python")).args(pip).arg(&pinned))?;
            fs::copy(&pinned, &seal)?;
        }
        Ok(Self { programs: tools.join("bin") })
    }

    /// Builds the command line in the source folder `root`. Returns the binary's path.
    pub(crate) fn build(
        &self,
        root: &Path,
        folder: &Path,
        (target, edition): (Target, Edition),
        time: u64,
    ) -> Result<PathBuf> {
        if let Some(rustup) = find("rustup") {
            run(Command::new(rustup).args(["target", "add", target.triple()]).current_dir(root))?;
        }
        let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
        let cargo_home = cargo_home.ok_or("neither CARGO_HOME nor HOME is set")?;
        // Of two that fit, the later one applies.
        let renamed = [(root, "/sottovoce"), (cargo_home.as_path(), "/cargo"), (folder, "/target")];
        let mut flags = OsString::new();
        for (at, name) in renamed {
            if !flags.is_empty() {
                flags.push("\x1f");
            }
            flags.push("--remap-path-prefix=");
            flags.push(at);
            flags.push("=");
            flags.push(name);
        }
        let mut path = OsString::from(&self.programs);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut cargo = Command::new(self.programs.join("cargo-zigbuild"));
        cargo.args([
            "zigbuild",
            "--locked",
            "--profile",
            "dist",
            "-p",
            "sottovoce-cli",
            "--target",
        ]);
        cargo.arg(target.triple()).args(edition.features()).current_dir(root);
        cargo
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags);
        cargo.env("SOURCE_DATE_EPOCH", time.to_string()).env("CARGO_INCREMENTAL", "0");
        cargo.env_remove("RUSTFLAGS");
        run(&mut cargo)?;
        let name = folder.join(edition.name()).with_extension(target.name());
        fs::copy(folder.join(target.triple()).join("dist/sottovoce"), &name)?;
        Ok(name)
    }
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
