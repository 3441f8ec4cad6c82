//! Advice for each kind of finding. The library names no commands.

use std::io;

use serde::Serialize;
use sottovoce::prompt::Receipt;
use sottovoce::store::{Finding, FindingKind};

/// A finding as JSON, with its advice in `help`.
#[derive(Debug, Serialize)]
pub(crate) struct FindingRow<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    help: &'static str,
}

impl<'a> FindingRow<'a> {
    pub(crate) fn new(finding: &'a Finding) -> Self {
        Self { finding, help: advice(finding) }
    }

    pub(crate) fn all(findings: &'a [Finding]) -> Vec<Self> {
        findings.iter().map(Self::new).collect()
    }
}

/// A receipt as JSON, with advice for its findings.
pub(crate) fn receipt_json(receipt: &Receipt) -> io::Result<String> {
    let json = serde_json::to_string(receipt)?;
    // Quotes in strings are escaped, so this key occurs nowhere else.
    let of = |findings: String| format!("\"skipped\":{findings}");
    let plain = of(serde_json::to_string(&receipt.skipped)?);
    let advised = of(serde_json::to_string(&FindingRow::all(&receipt.skipped))?);
    Ok(json.replacen(&plain, &advised, 1))
}

/// What to do about a finding, in one line.
pub(crate) fn advice(finding: &Finding) -> &'static str {
    use FindingKind as Kind;
    let is_packed = finding.file.as_deref().is_some_and(|file| file.starts_with("packs"));
    match &finding.kind {
        Kind::WrongKey { .. } => "give the key that it was sealed under",
        Kind::UnboundKey { .. } => {
            "end a change of keys that was begun: `sottovoce rekey`; if there is none, `sottovoce repair --quarantine` takes the key out of the vault"
        }
        Kind::Misplaced { .. } => "`sottovoce repair` puts it back to its place",
        Kind::Damaged(_) if is_packed => "`sottovoce repair` makes a sound pack of what opens",
        Kind::Unopenable | Kind::Damaged(_) | Kind::BadRecord => {
            "restore it from a backup; `sottovoce repair --quarantine` moves it out of the way"
        }
        Kind::LegacyFormat | Kind::Foreign | Kind::NotPlain(_) => {
            "move it away if it is yours; `sottovoce repair --quarantine` does"
        }
        Kind::DuplicateNumber => "read both; `sottovoce forget` takes both away",
        Kind::NewerFormat(_) => "use the newer program that wrote it",
        Kind::Unreadable(_) => "check the disk and the file's mode, then look again",
        Kind::Missing | Kind::TailTruncated | Kind::Vanished => {
            "restore them from a backup, or record each as gone: `sottovoce forget NUMBER`"
        }
        Kind::ForgetMissing => {
            "restore it from a backup, or forget once more what should be gone: `sottovoce forget NUMBER`"
        }
        Kind::HeadMissing | Kind::HeadDamaged => {
            "`sottovoce repair` writes a new one from the records that are there"
        }
        Kind::VaultMissing => {
            "restore `vault` from a backup, or have `sottovoce repair` make one that fits the records"
        }
        Kind::Resurrected | Kind::Leftover | Kind::RedundantCopy => {
            "`sottovoce repair` tidies up at once"
        }
        Kind::Unlisted => {
            "if it is yours, `sottovoce repair --catalog` enters it again; if it was removed, remove it once more"
        }
        Kind::Absent | Kind::Outdated => {
            "restore the newest from a backup, or go on without it: `sottovoce repair`, for a whole conversation `sottovoce repair --catalog`"
        }
        Kind::HardLinked => "find the other name and remove it: `find / -samefile FILE`",
        Kind::RolledBack | Kind::TombstoneLost | Kind::Replaced => {
            "look for the newer folder before anything more is written: `sottovoce forget` and appends go on from here"
        }
        Kind::NotCompared => "take a new one: `sottovoce verify --save FILE`",
        Kind::Dangling { .. } => {
            "`sottovoce artifact list` shows what there is; nothing need be done"
        }
        Kind::Quarantined { .. } => "look through it and delete it when nothing in it is wanted",
        _ => "`sottovoce repair --dry-run` says what can be done",
    }
}
