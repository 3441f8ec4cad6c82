//! Grants: who may do what with a conversation

use crate::api::{Action, Grant, GrantList, Id, Level};
use crate::error::{Error, Result};
use crate::team::caller::{Permit, permitted};
use crate::team::text::{Stored, id};
use crate::team::{Team, must, values};

const LIST: &str = concat!(
    "SELECT member, level FROM grant_ WHERE conversation = $2 AND ",
    permitted!(),
    " ORDER BY member"
);
const SET: &str = "\
INSERT INTO grant_ (conversation, member, level) \
SELECT c.id, m.id, $3 FROM conversation c, member m WHERE c.id = $1 AND m.id = $2 AND m.org = c.org \
ON CONFLICT (conversation, member) DO UPDATE SET level = excluded.level RETURNING level";
const REVOKE: &str = "DELETE FROM grant_ WHERE conversation = $1 AND member = $2 RETURNING level";

impl Team {
    pub(crate) async fn grants(&self, permit: &Permit) -> Result<GrantList> {
        let rows = self.read(permit, LIST, Vec::new()).await?;
        let grant = |row: &crate::database::Row| {
            Ok(Grant { member: id(row, 0)?, level: Level::read(row, 1)? })
        };
        Ok(GrantList { grants: rows.iter().map(grant).collect::<Result<_>>()? })
    }

    pub(crate) async fn grant(&self, permit: &Permit, member: Id, level: Level) -> Result<()> {
        let place = permit.place()?;
        let values = values![place.id, member, level.number()];
        let set = must(SET, values, Error::NotFound { what: "member" });
        self.change(permit, Action::Grant, place.id, Some(member), vec![set]).await
    }

    pub(crate) async fn revoke_grant(&self, permit: &Permit, member: Id) -> Result<()> {
        let place = permit.place()?;
        let revoke = must(REVOKE, values![place.id, member], Error::NotFound { what: "grant" });
        self.change(permit, Action::RevokeGrant, place.id, Some(member), vec![revoke]).await
    }
}
