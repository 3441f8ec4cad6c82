//! What a release consists of: static binaries, archives, Debian packages, images, and their sums.

mod archive;
mod bill;
mod contents;
mod debian;
mod digest;
mod edition;
mod file;
mod image;
mod licences;
mod package;
mod release;
mod reproduced;
mod settings_file;
mod target;
mod toolchain;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use edition::Edition;
use release::Site;
use target::Target;
use toolchain::Toolchain;

use crate::task::{HELP, Result};

#[derive(Debug, Default)]
pub(crate) struct Options {
    targets: Vec<Target>,
    editions: Vec<Edition>,
    /// Packed instead of what would be built.
    program: Option<PathBuf>,
    /// Where the files go.
    out: Option<PathBuf>,
    /// Whether the files are tried as their users would, and everything is built again elsewhere.
    is_to_prove: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self { editions: vec![Edition::Whole], ..Self::default() };
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            match argument {
                "--target" => {
                    let name = arguments.next().ok_or("--target needs a value")?;
                    options.targets.push(Target::named(name)?);
                }
                "--small" => options.editions.push(Edition::Small),
                "--prove" => options.is_to_prove = true,
                "--program" => {
                    let program = arguments.next().ok_or("--program needs a value")?;
                    options.program = Some(program.into());
                }
                "--out" => {
                    options.out = Some(arguments.next().ok_or("--out needs a value")?.into());
                }
                _ => return Err(format!("no such option: {argument}\n\n{}", HELP).into()),
            }
        }
        if options.program.is_some() && !options.targets.is_empty() {
            return Err("--program is for this machine; leave out --target".into());
        }
        if options.program.is_some() && options.is_to_prove {
            return Err("--prove is for what is built; leave out --program".into());
        }
        if options.targets.is_empty() {
            options.targets = match options.program {
                Some(_) => vec![Target::X86_64],
                None => Target::ALL.to_vec(),
            };
        }
        Ok(options)
    }
}

/// Makes the release in `target/dist/release`, or where it is told. Returns whether no binary is too large, and whatever is to be proven
/// holds.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let built = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let mut folder = root.join(built.unwrap_or_else(|| "target".into()));
    let toolchain = match options.program {
        Some(_) => None,
        None => {
            folder.push("dist");
            fs::create_dir_all(&folder)?;
            Some(Toolchain::install(&root, &folder)?)
        }
    };
    let site = Site { time: toolchain::time(&root)?, root, folder };
    let mut files = Vec::new();
    let mut is_small_enough = true;
    for &edition in &options.editions {
        let built = |target| match (&toolchain, &options.program) {
            (Some(toolchain), _) => toolchain.build(&site.root, &site.folder, target, edition),
            (None, program) => {
                program.clone().ok_or_else(|| "there is nothing to build with".into())
            }
        };
        let program = built(Target::X86_64)?;
        for &target in &options.targets {
            let path = built(target)?;
            let binary = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let size = binary.len();
            if size > edition.limit() && toolchain.is_some() {
                eprintln!("{} has {size} bytes, more than {}", edition.name(), edition.limit());
                is_small_enough = false;
            }
            files.extend(release::make(&site, target, edition, &binary, &program)?);
        }
    }
    files.sort();
    files.push(digest::sums(&files));
    let release = options.out.clone().unwrap_or_else(|| site.folder.join("release"));
    fs::create_dir_all(&release)?;
    for file in &files {
        let path = release.join(&file.path);
        fs::write(&path, &file.content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
        println!("{:>10}  {}  {}", file.content.len(), digest::sha256(&file.content), file.path);
    }
    println!("in {}", release.display());
    let mut is_proven = true;
    if let (true, Some(toolchain)) = (options.is_to_prove, &toolchain) {
        is_proven = reproduced::check(&site, toolchain, &options.targets, &options.editions)?;
        let tried = Command::new(site.root.join(".ci/dist")).arg(&release).status()?;
        is_proven &= tried.success();
    }
    Ok(is_small_enough && is_proven)
}
