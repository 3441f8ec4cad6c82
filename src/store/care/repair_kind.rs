//! Kinds of repairs.

use std::fmt;

use serde::Serialize;
use serde::ser::SerializeStruct;

use crate::store::folder::settings;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{HEAD, PACKS, QUARANTINE, VAULT};
use crate::store::record::name::pack_name::PackName;

/// How a repair handles a finding. `Display` describes it in a few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairKind {
    /// Make a vault that names the key id in the existing records.
    AdoptVault,
    /// Remove unbound keys from the vault and keep a copy of it in the quarantine folder.
    BindVault,
    /// Write a new head from the existing records and quarantine a damaged one.
    RenewHead,
    /// Make a valid pack of the records that open and quarantine the rest.
    RebuildPack,
    /// Remove copies of records that are durable elsewhere with the same bytes.
    RemoveCopies,
    /// Remove forgotten records again.
    ForgetAgain,
    /// Remove what an interrupted write left behind.
    Sweep,
    /// Continue with the settings and snapshots that exist, and record numbers of a later state of the store as gone.
    Accept,
    /// Move the file, unchanged, to the quarantine folder.
    SetAside,
}

impl RepairKind {
    /// The repair for a finding, if there is one. Some repairs need `quarantine`.
    pub(crate) fn of(finding: &Finding, quarantine: bool) -> Option<Self> {
        use FindingKind as Kind;
        match &finding.kind {
            Kind::VaultMissing => Some(Self::AdoptVault),
            Kind::UnboundKey { .. } if quarantine && finding.file.as_deref() == Some(VAULT) => {
                Some(Self::BindVault)
            }
            Kind::HeadMissing | Kind::HeadDamaged => Some(Self::RenewHead),
            Kind::RedundantCopy => Some(Self::RemoveCopies),
            Kind::Resurrected => Some(Self::ForgetAgain),
            Kind::Leftover => Some(Self::Sweep),
            Kind::Absent | Kind::Outdated | Kind::PutBack { .. } => Some(Self::Accept),
            Kind::Unopenable | Kind::Damaged(_) | Kind::BadRecord
                if settings::is_about_settings(finding) || settings::is_about_presets(finding) =>
            {
                Some(Self::Accept)
            }
            Kind::Damaged(_) if is_pack(finding) => Some(Self::RebuildPack),
            Kind::Unopenable | Kind::Damaged(_) | Kind::BadRecord | Kind::LegacyFormat
                if quarantine && pack_of(finding).is_some() =>
            {
                Some(Self::RebuildPack)
            }
            // What another key or a newer program may read stays where it is.
            Kind::Unopenable
            | Kind::Damaged(_)
            | Kind::BadRecord
            | Kind::LegacyFormat
            | Kind::Foreign
            | Kind::NotPlain(_)
                if quarantine && !is_ours(finding) =>
            {
                Some(Self::SetAside)
            }
            _ => None,
        }
    }

    /// A stable short name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::AdoptVault => "adopt-vault",
            Self::BindVault => "bind-vault",
            Self::RenewHead => "renew-head",
            Self::RebuildPack => "rebuild-pack",
            Self::RemoveCopies => "remove-copies",
            Self::ForgetAgain => "forget-again",
            Self::Sweep => "sweep",
            Self::Accept => "accept",
            Self::SetAside => "set-aside",
        }
    }
}

impl fmt::Display for RepairKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdoptVault => "make a vault that fits the records",
            Self::BindVault => {
                "remove it from the vault and keep a copy of the vault in the quarantine folder"
            }
            Self::RenewHead => "write a new head from the records that are there",
            Self::RebuildPack => "make a sound pack of what opens, and quarantine the rest",
            Self::RemoveCopies => "remove copies that are stored elsewhere with the same bytes",
            Self::ForgetAgain => "remove it again",
            Self::Sweep => "remove it",
            Self::Accept => "continue with what is there",
            Self::SetAside => "move it to the quarantine folder",
        })
    }
}

/// A finding and its repair, planned or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairAction {
    /// The finding.
    pub finding: Finding,
    /// The repair.
    pub kind: RepairKind,
}

/// For machines: the finding's fields and `remedy`.
impl Serialize for RepairAction {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("RepairAction", 4)?;
        fields.serialize_field("remedy", self.kind.code())?;
        fields.serialize_field("finding", self.finding.kind.code())?;
        fields.serialize_field("file", &self.finding.file)?;
        fields.serialize_field("seqs", &self.finding.seqs)?;
        fields.end()
    }
}

impl Finding {
    /// The repair for this finding that needs no quarantine, if there is one.
    pub fn repair_kind(&self) -> Option<RepairKind> {
        RepairKind::of(self, false)
    }
}

/// The pack that a finding is about, or that has the finding's line.
pub(crate) fn pack_of(finding: &Finding) -> Option<PackName> {
    let below = finding.file.as_deref()?.strip_prefix(PACKS)?.strip_prefix('/')?;
    below.split(':').next()?.parse().ok()
}

/// Whether a finding is about a whole pack.
fn is_pack(finding: &Finding) -> bool {
    pack_of(finding).is_some() && !finding.file.as_deref().is_some_and(|file| file.contains(':'))
}

/// Whether the path is one of the store's own, so that its file must not be moved aside.
fn is_ours(finding: &Finding) -> bool {
    finding.file.as_deref().is_none_or(|file| {
        file == HEAD || file == QUARANTINE || file == format!("{}/{}", PACKS, QUARANTINE)
    })
}
