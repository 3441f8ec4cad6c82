//! Callers: who asks, and what that member may do

use sha2::{Digest, Sha256};

use crate::api::{Action, Id, Level, Role, Secret};
use crate::database::Step;
use crate::error::{Error, Result};
use crate::team::text::{Stored, id};
use crate::team::{Team, must, step, values};

/// Orders the transactions that change an organisation, and numbers its audit.
const LOCK: &str = "UPDATE org SET audited = audited + 1 WHERE id = $1 RETURNING audited";

/// After the lock, since only this statement sees what the transactions before did.
const STILL: &str = "\
SELECT 1 FROM token t JOIN member m ON m.id = t.member \
LEFT JOIN grant_ g ON g.member = m.id AND g.conversation = $2 \
WHERE t.sha256 = $1 AND (m.role >= $3 OR g.level >= $4)";

const AUDIT: &str = "\
INSERT INTO audit (org, n, at, member, action, target, subject) \
VALUES ($1, (SELECT audited FROM org WHERE id = $1), $2, $3, $4, $5, $6)";

/// A member who asks, by a token that is valid now.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) member: Id,
    pub(crate) org: Id,
    pub(crate) role: Role,
    pub(crate) device: Id,
    pub(crate) token: Id,
    pub(crate) expires: i64,
    sha256: Vec<u8>,
    /// The conversation that the request names, if it is one of this organisation.
    pub(crate) place: Option<Place>,
}

/// A conversation, and what the caller may do with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) id: Id,
    pub(crate) last: i64,
    pub(crate) level: Option<Level>,
}

/// What a transaction is allowed by, besides a valid token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needs {
    /// At least this role.
    Role(Role),
    /// At least this level for a conversation.
    Level(Id, Level),
    /// An administrator, or whoever manages the conversation.
    Manager(Id),
}

impl Caller {
    /// Requires a role.
    pub(crate) fn needs(&self, role: Role) -> Result<()> {
        match self.role >= role {
            true => Ok(()),
            false => Err(Error::Forbidden { what: "this needs another role" }),
        }
    }

    /// Requires a level for the conversation. A conversation that the caller may not read is as if it did not exist.
    pub(crate) fn place(&self, level: Level) -> Result<Place> {
        match self.place {
            Some(place) if place.level >= Some(level) => Ok(place),
            Some(Place { level: Some(_), .. }) => {
                Err(Error::Forbidden { what: "this needs another grant for the conversation" })
            }
            _ => Err(Error::NotFound { what: "conversation" }),
        }
    }

    /// Requires that the caller manages the conversation, or is an administrator.
    pub(crate) fn manages(&self) -> Result<Place> {
        match self.place {
            Some(place) if self.role >= Role::Admin => Ok(place),
            _ => self.place(Level::Manage),
        }
    }
}

impl Team {
    /// Who has this token. `conversation` may be any identifier.
    pub(crate) async fn caller(&self, token: &Secret, conversation: Option<Id>) -> Result<Caller> {
        let sha256 = digest(token);
        let mut key = sha256.clone();
        key.extend(conversation.iter().flat_map(|id| id.as_bytes()));
        let found = self.lookups.find(&self.database, key).await?;
        let row = found.filter(|row| row.int(6) > self.now()).ok_or(Error::Unauthorized)?;
        let place = match row.bytes(7) {
            Some(_) => Some(Place {
                id: id(&row, 7)?,
                last: row.int(8),
                level: row.maybe_int(9).and_then(Level::from_number),
            }),
            None => None,
        };
        Ok(Caller {
            member: id(&row, 1)?,
            org: id(&row, 2)?,
            role: Role::read(&row, 3)?,
            device: id(&row, 4)?,
            token: id(&row, 5)?,
            expires: row.int(6),
            sha256,
            place,
        })
    }

    /// The beginning of a transaction that changes an organisation: one after the other, only while the caller is still allowed
    /// to, and on record.
    pub(super) fn on_record(
        &self,
        caller: &Caller,
        needs: Needs,
        action: Action,
        target: Id,
        subject: Option<Id>,
    ) -> Vec<(Step, Option<Error>)> {
        let nobody = i64::from(i16::MAX);
        let (conversation, role, level) = match needs {
            Needs::Role(role) => (None, role.number(), nobody),
            Needs::Level(conversation, level) => (Some(conversation), nobody, level.number()),
            Needs::Manager(conversation) => {
                (Some(conversation), Role::Admin.number(), Level::Manage.number())
            }
        };
        vec![
            must(LOCK, values![caller.org], Error::Unauthorized),
            must(
                STILL,
                values![caller.sha256.clone(), conversation, role, level],
                Error::Unauthorized,
            ),
            audit(caller.org, self.now(), caller.member, action, target, subject),
        ]
    }
}

/// Writes a line of the audit. The organisation's row is locked and has its number.
pub(super) fn audit(
    org: Id,
    now: i64,
    member: Id,
    action: Action,
    target: Id,
    subject: Option<Id>,
) -> (Step, Option<Error>) {
    step(AUDIT, values![org, now, member, action.number(), target, subject])
}

/// What is stored of a secret.
pub fn digest(secret: &Secret) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}
