//! Grants: who may do what with a conversation

use crate::api::{Action, Grant, GrantList, Id, Level};
use crate::error::{Error, Result};
use crate::team::caller::{Caller, Needs, Place};
use crate::team::text::{Stored, id};
use crate::team::{Team, must, values};

const LIST: &str = "SELECT member, level FROM grant_ WHERE conversation = $1 ORDER BY member";
const SET: &str = "\
INSERT INTO grant_ (conversation, member, level) \
SELECT c.id, m.id, $3 FROM conversation c, member m WHERE c.id = $1 AND m.id = $2 AND m.org = c.org \
ON CONFLICT (conversation, member) DO UPDATE SET level = excluded.level RETURNING level";
const REVOKE: &str = "DELETE FROM grant_ WHERE conversation = $1 AND member = $2 RETURNING level";

impl Team {
    pub(crate) async fn grants(&self, place: Place) -> Result<GrantList> {
        let rows = self.rows(LIST, values![place.id]).await?;
        let grant = |row: &crate::database::Row| {
            Ok(Grant { member: id(row, 0)?, level: Level::read(row, 1)? })
        };
        Ok(GrantList { grants: rows.iter().map(grant).collect::<Result<_>>()? })
    }

    pub(crate) async fn grant(
        &self,
        caller: &Caller,
        place: Place,
        member: Id,
        level: Level,
    ) -> Result<()> {
        let needs = Needs::Manager(place.id);
        let mut steps = self.on_record(caller, needs, Action::Grant, place.id, Some(member));
        let values = values![place.id, member, level.number()];
        steps.push(must(SET, values, Error::NotFound { what: "member" }));
        self.run(steps).await.map(drop)
    }

    pub(crate) async fn revoke_grant(
        &self,
        caller: &Caller,
        place: Place,
        member: Id,
    ) -> Result<()> {
        // Everybody may leave a conversation.
        let needs = match member == caller.member {
            true => Needs::Level(place.id, Level::Read),
            false => Needs::Manager(place.id),
        };
        let mut steps = self.on_record(caller, needs, Action::RevokeGrant, place.id, Some(member));
        steps.push(must(REVOKE, values![place.id, member], Error::NotFound { what: "grant" }));
        self.run(steps).await.map(drop)
    }
}
