//! Callers: who asks, and what that member may do
//!
//! A right that was looked up may be gone by the time it is used: a body may arrive for a minute, and a database may be busy. So every
//! operation has a [`Permit`], and each of its transactions asks the database again.

use sha2::{Digest, Sha256};

use crate::api::{Action, Id, Level, Role, Secret};
use crate::database::{Row, Step, Value};
use crate::error::{Error, Result};
use crate::team::text::{Stored, id};
use crate::team::{Team, must, step, values};

/// Orders the transactions that change an organisation, and numbers its audit.
pub(super) const LOCK: &str =
    "UPDATE org SET audited = audited + 1 WHERE id = $1 RETURNING audited";

/// A condition of a statement: whether the caller still may. Its five values come first among the statement's, and the second one is the
/// conversation.
macro_rules! permitted {
    () => {
        "EXISTS (SELECT 1 FROM token t JOIN member m ON m.id = t.member \
         LEFT JOIN grant_ g ON g.member = m.id AND g.conversation = $2 \
         WHERE t.sha256 = $1 AND t.expires > $3 AND (m.role >= $4 OR g.level >= $5))"
    };
}
pub(super) use permitted;

/// After the lock, since only this statement sees what the transactions before did.
const STILL: &str = concat!("SELECT 1 WHERE ", permitted!());

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
    pub(super) sha256: Vec<u8>,
    /// The conversation that the request names, if it is one of this organisation.
    place: Option<Place>,
}

/// A conversation, and what the caller may do with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) id: Id,
    pub(crate) last: i64,
    level: Option<Level>,
}

/// What an operation is allowed by, besides a valid token.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Needs {
    /// At least this role.
    Role(Role),
    /// At least this level for the conversation.
    Level(Level),
    /// At least this level for the conversation, or an administrator.
    AdminOr(Level),
}

/// A caller who may do something.
#[derive(Debug, Clone)]
pub(crate) struct Permit {
    pub(crate) caller: Caller,
    needs: Needs,
}

impl Caller {
    /// Requires a right. A conversation that the caller may not read is as if it did not exist.
    pub(crate) fn permit(self, needs: Needs) -> Result<Permit> {
        let level = self.place.and_then(|place| place.level);
        let is_admin = self.place.is_some() && self.role >= Role::Admin;
        let may = match needs {
            Needs::Role(role) => self.role >= role,
            Needs::Level(least) => level >= Some(least),
            Needs::AdminOr(least) => is_admin || level >= Some(least),
        };
        match needs {
            _ if may => Ok(Permit { caller: self, needs }),
            Needs::Role(_) => Err(Error::Forbidden { what: "this needs another role" }),
            _ if level.is_some() => {
                Err(Error::Forbidden { what: "this needs another grant for the conversation" })
            }
            _ => Err(Error::NotFound { what: "conversation" }),
        }
    }
}

impl Permit {
    /// The conversation.
    pub(crate) fn place(&self) -> Result<Place> {
        self.caller.place.ok_or(Error::NotFound { what: "conversation" })
    }

    /// The values of a statement with `permitted!`, of which these are the last.
    fn values(&self, now: i64, own: Vec<Value>) -> Vec<Value> {
        let nobody = i64::from(i16::MAX);
        let (role, level) = match self.needs {
            Needs::Role(role) => (role.number(), nobody),
            Needs::Level(level) => (nobody, level.number()),
            Needs::AdminOr(level) => (Role::Admin.number(), level.number()),
        };
        let conversation = self.caller.place.map(|place| place.id);
        let mut values = values![self.caller.sha256.clone(), conversation, now, role, level];
        values.extend(own);
        values
    }
}

impl Team {
    /// Who has this token. `conversation` may be any identifier.
    pub(crate) async fn caller(&self, token: &Secret, conversation: Option<Id>) -> Result<Caller> {
        self.find_caller(digest(token), conversation).await
    }

    /// What the caller may do now with a conversation.
    pub(crate) async fn caller_in(&self, caller: &Caller, conversation: Id) -> Result<Caller> {
        self.find_caller(caller.sha256.clone(), Some(conversation)).await
    }

    /// The same permit as of now.
    ///
    /// # Errors
    /// The one that tells which right is gone.
    pub(crate) async fn renew(&self, permit: &Permit) -> Result<Permit> {
        let caller = &permit.caller;
        let conversation = caller.place.map(|place| place.id);
        self.find_caller(caller.sha256.clone(), conversation).await?.permit(permit.needs)
    }

    async fn find_caller(&self, sha256: Vec<u8>, conversation: Option<Id>) -> Result<Caller> {
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

    /// The rows of a statement with `permitted!`. `own` are its values from the sixth on.
    pub(super) async fn read(
        &self,
        permit: &Permit,
        sql: &'static str,
        own: Vec<Value>,
    ) -> Result<Vec<Row>> {
        let rows = self.rows(sql, permit.values(self.now(), own)).await?;
        if rows.is_empty() {
            // There is nothing, or the caller may not see it any more.
            self.renew(permit).await?;
        }
        Ok(rows)
    }

    /// Runs statements in one transaction, if the caller still may.
    pub(super) async fn write(
        &self,
        permit: &Permit,
        mut steps: Vec<(Step, Option<Error>)>,
    ) -> Result<()> {
        steps.insert(0, self.still(permit));
        self.run_with(permit, steps).await
    }

    /// Changes an organisation in one transaction: one after the other, if the caller still may, and on record.
    pub(super) async fn change(
        &self,
        permit: &Permit,
        action: Action,
        target: Id,
        subject: Option<Id>,
        steps: Vec<(Step, Option<Error>)>,
    ) -> Result<()> {
        let Caller { org, member, .. } = permit.caller;
        let mut all = vec![
            must(LOCK, values![org], Error::Unauthorized),
            self.still(permit),
            audit(org, self.now(), member, action, target, subject),
        ];
        all.extend(steps);
        self.run_with(permit, all).await
    }

    fn still(&self, permit: &Permit) -> (Step, Option<Error>) {
        must(STILL, permit.values(self.now(), Vec::new()), Error::Unauthorized)
    }

    async fn run_with(&self, permit: &Permit, steps: Vec<(Step, Option<Error>)>) -> Result<()> {
        match self.run(steps).await {
            Err(Error::Unauthorized) => Err(self.gone(permit).await),
            other => other.map(drop),
        }
    }

    /// Which right is gone.
    pub(super) async fn gone(&self, permit: &Permit) -> Error {
        // It may be back.
        self.renew(permit).await.err().unwrap_or(Error::Busy)
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
