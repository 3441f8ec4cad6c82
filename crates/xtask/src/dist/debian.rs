//! Debian packages.

use std::fs;
use std::path::Path;

use crate::dist::archive::{ar, gzip, tar};
use crate::dist::contents::Contents;
use crate::dist::file::File;
use crate::dist::settings_file;
use crate::dist::target::Target;
use crate::task::Result;

/// What dpkg asks before it replaces.
const SETTINGS: &str = "etc/sottovoce/appsettings.json";

/// The store of the system's service.
const STORE: (&str, &str) = ("Context.StorageRoot", "/var/lib/sottovoce/store");

/// Makes the package `sottovoce_VERSION_ARCHITECTURE.deb`.
pub(crate) fn package(
    root: &Path,
    target: Target,
    version: &str,
    binary: &[u8],
    contents: &Contents,
    time: u64,
) -> Result<File> {
    let changes = gzip(&fs::read(root.join("CHANGELOG.md"))?)?;
    let scripts = root.join("packaging/debian");
    let copyright = fs::read_to_string(scripts.join("copyright"))?
        .replace("@LICENCES@", &field_lines(&contents.licences));
    let mut files = vec![
        File::program("usr/bin/sottovoce", binary),
        File::new(SETTINGS, settings_file::make(root, &[STORE])?),
        File::new("usr/share/doc/sottovoce/copyright", copyright),
        File::new("usr/share/doc/sottovoce/changelog.gz", changes),
    ];
    let [bash, zsh, fish] = &contents.completions;
    files.push(File::new("usr/share/bash-completion/completions/sottovoce", bash.as_slice()));
    files.push(File::new("usr/share/zsh/vendor-completions/_sottovoce", zsh.as_slice()));
    files.push(File::new("usr/share/fish/vendor_completions.d/sottovoce.fish", fish.as_slice()));
    for page in &contents.pages {
        let path = format!("usr/share/man/man1/{}.gz", page.path);
        files.push(File::new(path, gzip(&page.content)?));
    }
    if let Some([system, user]) = &contents.units {
        files.push(File::new("usr/lib/systemd/system/sottovoce.service", system.as_str()));
        files.push(File::new("usr/lib/systemd/user/sottovoce.service", user.as_str()));
    }
    let size: usize = files.iter().map(|file| file.content.len().div_ceil(1024)).sum();
    let control = fs::read_to_string(scripts.join("control"))?
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", target.architecture())
        .replace("@SIZE@", &size.to_string());
    let mut about =
        vec![File::new("control", control), File::new("conffiles", format!("/{SETTINGS}\n"))];
    for script in ["postinst", "prerm", "postrm"] {
        about.push(File::program(script, fs::read(scripts.join(script))?));
    }
    let package = ar(
        &[
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", &gzip(&tar(&about, &[], time)?)?),
            ("data.tar.gz", &gzip(&tar(&files, &[], time)?)?),
        ],
        time,
    );
    Ok(File::new(format!("sottovoce_{version}_{}.deb", target.architecture()), package))
}

/// The lines of a text as Debian's fields go on: after a space, and a full stop in place of an empty one.
fn field_lines(text: &str) -> String {
    let line = |line: &str| format!(" {}", if line.trim().is_empty() { "." } else { line });
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}
