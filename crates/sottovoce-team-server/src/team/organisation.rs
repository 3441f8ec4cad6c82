//! Organisations: creation, and what members see of theirs

use crate::api::{Action, Id, NewMember, Organisation, Role, Sealed};
use crate::error::{Error, Result};
use crate::team::caller::{Permit, audit, permitted};
use crate::team::text::{Stored, id};
use crate::team::token::{NEW_MEMBERS_TOKEN, new_token};
use crate::team::{Team, step, time, values};

const CREATE: &str = "INSERT INTO org (id, created, audited) VALUES ($1, $2, 1)";
pub(super) const ADD_MEMBER: &str =
    "INSERT INTO member (id, org, role, created, profile) VALUES ($1, $2, $3, $4, $5)";
const FIND: &str = concat!("SELECT created FROM org WHERE id = $6 AND ", permitted!());
const BYTES: &str =
    "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM conversation WHERE org = $1";

impl Team {
    /// Creates an organisation with its first owner.
    ///
    /// # Errors
    /// Those of the database, and [`Error::NoRandom`].
    pub async fn create_organisation(&self, profile: Option<Sealed>) -> Result<NewMember> {
        let now = self.now();
        let (org, member) = (random()?, random()?);
        let (token, add_token) = new_token(member, random()?, now, NEW_MEMBERS_TOKEN)?;
        let role = Role::Owner;
        let profile = profile.map(Sealed::into_bytes);
        self.run(vec![
            step(CREATE, values![org, now]),
            step(ADD_MEMBER, values![member, org, role.number(), now, profile]),
            add_token,
            audit(org, now, member, Action::CreateOrganisation, org, None),
        ])
        .await?;
        Ok(NewMember { org, member, role, token })
    }

    /// Whether there is no organisation yet.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.rows("SELECT id FROM org LIMIT 1", Vec::new()).await?.is_empty())
    }

    pub(crate) async fn organisation(&self, permit: &Permit) -> Result<Organisation> {
        let caller = &permit.caller;
        let bytes = self.stored_bytes(caller.org).await?;
        let rows = self.read(permit, FIND, values![caller.org]).await?;
        let row = rows.first().ok_or(Error::Unauthorized)?;
        Ok(Organisation {
            id: caller.org,
            created: time(row.int(0)),
            member: caller.member,
            role: caller.role,
            device: caller.device,
            token: caller.token,
            expires: time(caller.expires),
            bytes,
            quota: self.quotas.bytes,
        })
    }

    /// The bytes that an organisation stores.
    pub(crate) async fn stored_bytes(&self, org: Id) -> Result<u64> {
        let rows = self.rows(BYTES, values![org]).await?;
        Ok(rows.first().map_or(0, |row| row.int(0).unsigned_abs()))
    }

    /// How far each of these conversations and organisations is. Of an organisation, a number that differs after any change.
    pub(crate) async fn marks(&self, ids: Vec<Id>) -> Result<Vec<(Id, i64)>> {
        const MARKS: &str = "\
            SELECT id, last FROM conversation WHERE id IN_LIST($1) \
            UNION ALL \
            SELECT o.id, CAST(o.audited + (SELECT coalesce(sum(c.last), 0) FROM conversation c WHERE c.org = o.id) AS bigint) \
            FROM org o WHERE o.id IN_LIST($1)";
        let list = ids.into_iter().map(|id| id.as_bytes().to_vec()).collect();
        let rows = self.rows(MARKS, vec![crate::database::Value::List(list)]).await?;
        rows.iter().map(|row| Ok((id(row, 0)?, row.int(1)))).collect()
    }
}

/// A new identifier.
pub(super) fn random() -> Result<Id> {
    Id::random().ok_or(Error::NoRandom)
}
