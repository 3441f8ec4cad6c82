//! SHA-256 sums.

use sha2::{Digest, Sha256};

use crate::dist::file::File;

/// In hexadecimal digits.
pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What `sha256sum --check` reads.
pub(crate) fn sums(files: &[File]) -> File {
    let line = |file: &File| format!("{}  {}\n", sha256(&file.content), file.path);
    let lines: String = files.iter().map(line).collect();
    File::new("SHA256SUMS", lines)
}
