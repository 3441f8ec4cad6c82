//! Processes killed at moments that nobody chose.

use std::path::Path;

use crate::Result;
use crate::crash::report::Report;

pub(crate) const NAME: &str = "kills";

pub(crate) fn run(_rounds: usize, _report: &mut Report) -> Result<()> {
    Ok(())
}

pub(crate) fn work(_folder: &Path) -> Result<()> {
    Ok(())
}
