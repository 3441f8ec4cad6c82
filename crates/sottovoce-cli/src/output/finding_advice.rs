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
            "finish a change of keys with `sottovoce rekey`; if none was begun, `sottovoce repair --quarantine` removes the key from the vault"
        }
        Kind::Misplaced { .. } => "`sottovoce repair` moves it to its place",
        Kind::Damaged(_) if is_packed => {
            "`sottovoce repair` rebuilds the pack from the readable records"
        }
        Kind::Unopenable | Kind::Damaged(_) | Kind::BadRecord => {
            "restore it from a backup; `sottovoce repair --quarantine` moves it out of the way"
        }
        Kind::LegacyFormat | Kind::Foreign | Kind::NotPlain(_) => {
            "move it away if it is yours, or let `sottovoce repair --quarantine` do it"
        }
        Kind::DuplicateNumber => "read both; `sottovoce forget` deletes both",
        Kind::NewerFormat(_) => "use the newer program that wrote it",
        Kind::Unreadable(_) => "check the disk and the file's mode, then try again",
        Kind::Missing | Kind::TailTruncated | Kind::Vanished => {
            "restore them from a backup, or record each as gone: `sottovoce forget NUMBER`"
        }
        Kind::ForgetMissing => {
            "restore it from a backup, or forget the messages again: `sottovoce forget NUMBER`"
        }
        Kind::HeadMissing | Kind::HeadDamaged => {
            "`sottovoce repair` writes a new one from the existing records"
        }
        Kind::VaultMissing => {
            "restore `vault` from a backup, or let `sottovoce repair` rebuild it from the records"
        }
        Kind::Resurrected | Kind::Leftover | Kind::RedundantCopy => {
            "`sottovoce repair` cleans this up at once"
        }
        Kind::Unlisted => {
            "if you want to keep it, `sottovoce repair --catalog` lists it again; if it was removed, remove it again"
        }
        Kind::Absent | Kind::Outdated => {
            "restore the newest version from a backup, or continue without it: `sottovoce repair`, for a whole conversation `sottovoce repair --catalog`"
        }
        Kind::HardLinked => "find the other name and remove it: `find / -samefile FILE`",
        Kind::RolledBack | Kind::TombstoneLost | Kind::Replaced => {
            "look for the newer folder before you write anything: `sottovoce forget` and appends continue from this state"
        }
        Kind::NotCompared => "take a new one: `sottovoce verify --save FILE`",
        Kind::Dangling { .. } => {
            "`sottovoce artifact list` shows the artifacts; you need not do anything"
        }
        Kind::Quarantined { .. } => "look through it, and delete it if you need nothing in it",
        _ => "`sottovoce repair --dry-run` shows what can be repaired",
    }
}
