//! The folder of the stores, and a description of the machine and disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contender::Outcome;

/// The folder for the stores. It is created and deleted.
const FOLDER: &str = "sottovoce-rivals-data";
/// The largest size of the image, which grows as it is written.
const IMAGE_BYTES: u64 = 24 << 30;
const IMAGE_FILES: &str = "2500000";

/// A folder for the stores, removed with its contents when dropped.
pub(crate) struct Place {
    outer: PathBuf,
    mounted: Option<PathBuf>,
}

impl Place {
    /// Removes the rest of an interrupted run first.
    pub(crate) fn make(dir: &Path, ext4: bool) -> Outcome<Self> {
        let outer = dir.join(FOLDER);
        if outer.exists() {
            println!("removing what an earlier run left in {}", outer.display());
            if outer.join("mnt").exists() {
                // Fails if nothing is mounted.
                Command::new("umount").arg(outer.join("mnt")).output()?;
            }
            fs::remove_dir_all(&outer)?;
        }
        fs::create_dir_all(&outer)?;
        let mut place = Self { outer, mounted: None };
        if ext4 {
            place.mount()?;
        }
        Ok(place)
    }

    fn mount(&mut self) -> Outcome<()> {
        let (image, folder) = (self.outer.join("image"), self.outer.join("mnt"));
        fs::create_dir(&folder)?;
        fs::File::create(&image)?.set_len(IMAGE_BYTES)?;
        let mkfs = ["-q", "-F", "-O", "has_journal", "-N", IMAGE_FILES];
        run(Command::new("mkfs.ext4").args(mkfs).arg(&image))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&folder))?;
        self.mounted = Some(folder);
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.mounted.as_ref().unwrap_or(&self.outer)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(folder) = &self.mounted
            && let Err(error) = run(Command::new("umount").arg(folder))
        {
            println!("{} is still mounted: {error}", folder.display());
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.outer) {
            println!("{} could not be removed: {error}", self.outer.display());
        }
    }
}

fn run(command: &mut Command) -> Outcome<()> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

/// One line each: processor, system, and the file system of a folder.
pub(crate) fn conditions(folder: &Path) -> Outcome<Vec<String>> {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = processor.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, value)| value)
    };
    let aes = if field("flags").split(' ').any(|flag| flag == "aes") { "with" } else { "without" };
    let cores = std::thread::available_parallelism()?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(vec![
        format!("{cores} cores of {}, {aes} AES instructions", field("model name")),
        format!("Linux {}; stores on {}", release.trim(), file_system(folder)?),
    ])
}

fn file_system(folder: &Path) -> Outcome<String> {
    let folder = folder.canonicalize()?;
    let mounts = fs::read_to_string("/proc/mounts")?;
    let under = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            Some((fields.next()?, fields.next()?, fields.next()?))
        })
        .filter(|(_, at, _)| folder.starts_with(at))
        .max_by_key(|(_, at, _)| at.len());
    let Some((device, _, kind)) = under else {
        return Ok("an unknown file system".to_owned());
    };
    let name = Path::new(device).file_name().unwrap_or_default().to_string_lossy();
    if kind != "ext4" {
        return Ok(format!("{kind} ({name})"));
    }
    let journaled = fs::read_dir("/proc/fs/jbd2").is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| {
                entry.file_name().to_string_lossy().starts_with(&format!("{name}-"))
            })
        })
    });
    Ok(format!("ext4 ({name}), {}", if journaled { "journaled" } else { "without a journal" }))
}
