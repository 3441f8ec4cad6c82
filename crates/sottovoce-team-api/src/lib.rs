//! What clients and the server say to each other: the bodies of requests and answers

mod hex;
mod people;
mod problem;
mod records;
mod sealed;
mod secret;

pub use hex::{Hex, Id, NotHex, Rid};
pub use people::{
    AcceptInvitation, Action, AuditEntry, AuditPage, ChangeMember, CreateInvitation,
    CreateOrganisation, CreateToken, Grant, GrantList, Invitation, InvitationList, InvitedGrant,
    Level, Member, MemberList, NewInvitation, NewMember, NewToken, Organisation, Role, SetGrant,
    Token, TokenList,
};
pub use problem::Problem;
pub use records::{
    Append, Appended, Artifact, Conversation, ConversationList, ExportLine, Kind, NewConversation,
    NewRecord, Page, Record,
};
pub use sealed::Sealed;
pub use secret::{NotASecret, Secret};

/// The most records of one request or one page, and the most record ids that the forgettings of one request name.
pub const MAX_RECORDS: usize = 1_000;

/// The most bytes of one record's sealed contents: 1 MiB.
pub const MAX_SEALED: usize = 1 << 20;

/// The most bytes of a member's sealed profile.
pub const MAX_PROFILE: usize = 1 << 10;

/// The most bytes of a request's body, unless it is a piece of an artifact: 8 MiB.
pub const MAX_BODY: usize = 8 << 20;

/// The most bytes of one piece of an artifact: 16 MiB.
pub const MAX_ARTIFACT: usize = 16 << 20;

/// The longest time in seconds that a request for changes waits.
pub const MAX_WAIT: u64 = 55;
