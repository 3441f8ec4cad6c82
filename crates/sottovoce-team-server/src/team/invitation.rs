//! Invitations: made, listed, withdrawn, accepted once

use crate::api::{
    AcceptInvitation, Action, CreateInvitation, Id, Invitation, InvitationList, MAX_RECORDS,
    NewInvitation, NewMember, Role, Sealed, Secret,
};
use crate::error::{Error, Result};
use crate::team::caller::{LOCK, Permit, audit, digest, permitted};
use crate::team::organisation::random;
use crate::team::text::{Stored, id};
use crate::team::token::{DAY, NEW_MEMBERS_TOKEN, after, duration, new_token};
use crate::team::{Team, must, step, time, values};

const HAS_ROOM: &str =
    "SELECT 1 WHERE (SELECT count(*) FROM invitation WHERE org = $1 AND expires > $2) < $3";
const MAY_GIVE: &str = "SELECT 1 FROM member WHERE id = $1 AND role >= $2";
const ADD: &str = "INSERT INTO invitation (sha256, id, org, role, author, expires) VALUES ($1, $2, $3, $4, $5, $6)";
const ADD_GRANT: &str = "\
INSERT INTO invitation_grant (invitation, conversation, level) \
SELECT i.id, c.id, $3 FROM invitation i, conversation c WHERE i.id = $1 AND c.id = $2 AND c.org = i.org \
RETURNING level";
const LIST: &str = concat!(
    "SELECT id, role, author, expires FROM invitation WHERE org = $6 AND expires > $3 AND ",
    permitted!(),
    " ORDER BY expires, id"
);
const WITHDRAW: &str = "DELETE FROM invitation WHERE id = $1 AND org = $2 RETURNING id";

const FIND: &str = "SELECT id, org, role FROM invitation WHERE sha256 = $1 AND expires > $2";
const MEMBERS_FIT: &str = "SELECT 1 WHERE (SELECT count(*) FROM member WHERE org = $1) < $2";
const JOIN: &str = "\
INSERT INTO member (id, org, role, created, profile) \
SELECT $2, org, role, $3, $4 FROM invitation WHERE sha256 = $1 AND expires > $3 RETURNING id";
const GRANT: &str = "\
INSERT INTO grant_ (conversation, member, level) \
SELECT g.conversation, $2, g.level FROM invitation_grant g JOIN invitation i ON i.id = g.invitation WHERE i.sha256 = $1";
const USE_UP: &str = "DELETE FROM invitation WHERE sha256 = $1 RETURNING id";

impl Team {
    pub(crate) async fn invite(
        &self,
        permit: &Permit,
        request: &CreateInvitation,
    ) -> Result<NewInvitation> {
        let seconds = duration(request.seconds, DAY, 30 * DAY)?;
        if request.grants.len() > MAX_RECORDS {
            return Err(Error::TooLarge { what: "the grants of an invitation", most: MAX_RECORDS });
        }
        let (caller, now) = (&permit.caller, self.now());
        let (invitation, secret) = (random()?, Secret::random().ok_or(Error::NoRandom)?);
        let (role, expires) = (request.role.number(), after(now, seconds));
        let room = values![caller.org, now, i64::from(self.quotas.invitations)];
        let forbidden =
            Error::Forbidden { what: "an invitation gives at most the role of its author" };
        let mut steps = vec![
            must(HAS_ROOM, room, Error::Full { what: "open invitations" }),
            must(MAY_GIVE, values![caller.member, role], forbidden),
            step(
                ADD,
                values![digest(&secret), invitation, caller.org, role, caller.member, expires],
            ),
        ];
        for grant in &request.grants {
            let values = values![invitation, grant.conversation, grant.level.number()];
            steps.push(must(ADD_GRANT, values, Error::NotFound { what: "conversation" }));
        }
        self.change(permit, Action::Invite, invitation, None, steps).await?;
        Ok(NewInvitation { id: invitation, invitation: secret, expires: time(expires) })
    }

    pub(crate) async fn invitations(&self, permit: &Permit) -> Result<InvitationList> {
        let rows = self.read(permit, LIST, values![permit.caller.org]).await?;
        let invitation = |row: &crate::database::Row| {
            Ok(Invitation {
                id: id(row, 0)?,
                role: Role::read(row, 1)?,
                by: id(row, 2)?,
                expires: time(row.int(3)),
            })
        };
        Ok(InvitationList { invitations: rows.iter().map(invitation).collect::<Result<_>>()? })
    }

    pub(crate) async fn withdraw(&self, permit: &Permit, invitation: Id) -> Result<()> {
        let values = values![invitation, permit.caller.org];
        let withdraw = must(WITHDRAW, values, Error::NotFound { what: "invitation" });
        self.change(permit, Action::Withdraw, invitation, None, vec![withdraw]).await
    }

    pub(crate) async fn accept(&self, request: AcceptInvitation) -> Result<NewMember> {
        let now = self.now();
        let secret = digest(&request.invitation);
        let unknown = || Error::NotFound { what: "invitation" };
        let rows = self.rows(FIND, values![secret.clone(), now]).await?;
        let row = rows.first().ok_or_else(unknown)?;
        let (invitation, org, role): (Id, Id, Role) =
            (id(row, 0)?, id(row, 1)?, Role::read(row, 2)?);
        let member = random()?;
        let (token, add_token) = new_token(member, random()?, now, NEW_MEMBERS_TOKEN)?;
        let profile = request.profile.map(Sealed::into_bytes);
        self.run(vec![
            must(LOCK, values![org], unknown()),
            must(
                MEMBERS_FIT,
                values![org, i64::from(self.quotas.members)],
                Error::Full { what: "members" },
            ),
            // Whoever comes second finds the invitation used up.
            must(JOIN, values![secret.clone(), member, now, profile], unknown()),
            add_token,
            step(GRANT, values![secret.clone(), member]),
            audit(org, now, member, Action::Accept, invitation, None),
            must(USE_UP, values![secret], unknown()),
        ])
        .await?;
        Ok(NewMember { org, member, role, token })
    }
}
