//! All files of a release for one kind of machine.

use std::path::{Path, PathBuf};

use crate::dist::archive::{gzip, tar};
use crate::dist::contents::Contents;
use crate::dist::edition::Edition;
use crate::dist::file::File;
use crate::dist::package::Package;
use crate::dist::target::Target;
use crate::dist::{bill, debian, image, licences, settings_file};
use crate::task::Result;

/// Where and when a release is made.
#[derive(Debug)]
pub(crate) struct Site {
    /// The folder of the sources.
    pub(crate) root: PathBuf,
    /// The folder for what is built.
    pub(crate) folder: PathBuf,
    /// Seconds since 1970 that everything is dated with.
    pub(crate) time: u64,
}

/// Makes everything for this target from its binary, which is the first file.
///
/// `program` is the same edition for this machine. It tells what it knows of itself.
pub(crate) fn make(
    site: &Site,
    target: Target,
    edition: Edition,
    binary: &[u8],
    program: &Path,
) -> Result<Vec<File>> {
    let version = env!("CARGO_PKG_VERSION");
    let root = site.root.as_path();
    let packages = Package::all(root, target, edition)?;
    let licences = licences::collect(root, &packages)?;
    let contents = Contents::gather(root, program, edition, licences)?;
    let name = format!("{}-{version}-linux-{}", edition.name(), target.name());
    let mut files = vec![
        File::program(name.clone(), binary),
        File::new(format!("{name}.cdx.json"), bill::make(&packages, binary)?),
        File::new(format!("{name}.tar.gz"), archive(root, &name, binary, &contents, site.time)?),
    ];
    if edition == Edition::Whole {
        files.push(debian::package(root, target, version, binary, &contents, site.time)?);
        let image = image::make(target, version, binary, site.time)?;
        files.push(File::new(format!("{name}.oci.tar"), image));
    }
    Ok(files)
}

/// The archive for machines without dpkg: everything in one folder.
fn archive(
    root: &Path,
    name: &str,
    binary: &[u8],
    contents: &Contents,
    time: u64,
) -> Result<Vec<u8>> {
    let at = |path: &str| format!("{name}/{path}");
    let [bash, zsh, fish] = &contents.completions;
    let mut files = vec![
        File::program(at("sottovoce"), binary),
        File::new(at("appsettings.json"), settings_file::make(root, &[])?),
        File::new(at("LICENCES"), contents.licences.as_str()),
        File::new(at("completions/sottovoce.bash"), bash.as_slice()),
        File::new(at("completions/_sottovoce"), zsh.as_slice()),
        File::new(at("completions/sottovoce.fish"), fish.as_slice()),
    ];
    for page in &contents.pages {
        files.push(File::new(at(&format!("man/man1/{}", page.path)), page.content.as_slice()));
    }
    if let Some([system, user]) = &contents.units {
        files.push(File::new(at("systemd/sottovoce.service"), system.as_str()));
        files.push(File::new(at("systemd/sottovoce-user.service"), user.as_str()));
    }
    gzip(&tar(&files, &[], time)?)
}
