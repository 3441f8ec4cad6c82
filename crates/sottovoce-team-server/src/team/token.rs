//! Tokens: issued, listed, revoked

use crate::api::{Action, CreateToken, Id, NewToken, Role, Secret, Token, TokenList};
use crate::database::Step;
use crate::error::{Error, Result};
use crate::team::caller::{Permit, digest, permitted};
use crate::team::organisation::random;
use crate::team::text::{Stored, id};
use crate::team::{Team, must, step, time, values};

pub(super) const DAY: u64 = 24 * 60 * 60;

/// How long a new member's token is valid, in seconds.
pub(super) const NEW_MEMBERS_TOKEN: u64 = 90 * DAY;

const ADD: &str = "INSERT INTO token (sha256, id, member, device, created, expires) VALUES ($1, $2, $3, $4, $5, $6)";
const HAS_ROOM: &str =
    "SELECT 1 WHERE (SELECT count(*) FROM token WHERE member = $1 AND expires > $3) < $2";
const LIST: &str = concat!(
    "SELECT id, device, created, expires FROM token WHERE member = $6 AND ",
    permitted!(),
    " ORDER BY created, id"
);
/// Members revoke their own, and administrators those of members of no higher role.
const REVOKE: &str = "\
DELETE FROM token WHERE id = $1 AND member IN (\
 SELECT m.id FROM member m JOIN member c ON c.id = $3 \
 WHERE m.org = $2 AND (m.id = c.id OR (m.role <= c.role AND c.role >= $4))\
) RETURNING id";

impl Team {
    pub(crate) async fn issue_token(
        &self,
        permit: &Permit,
        request: &CreateToken,
    ) -> Result<NewToken> {
        let caller = &permit.caller;
        let seconds = duration(request.seconds, NEW_MEMBERS_TOKEN, 366 * DAY)?;
        let device = if request.same_device { caller.device } else { random()? };
        let (token, add) = new_token(caller.member, device, self.now(), seconds)?;
        let room = values![caller.member, i64::from(self.quotas.tokens), self.now()];
        let steps = vec![must(HAS_ROOM, room, Error::Full { what: "tokens" }), add];
        self.change(permit, Action::IssueToken, token.id, None, steps).await?;
        Ok(token)
    }

    pub(crate) async fn tokens(&self, permit: &Permit) -> Result<TokenList> {
        let token = |row: &crate::database::Row| {
            Ok(Token {
                id: id(row, 0)?,
                device: id(row, 1)?,
                issued: time(row.int(2)),
                expires: time(row.int(3)),
            })
        };
        let rows = self.read(permit, LIST, values![permit.caller.member]).await?;
        Ok(TokenList { tokens: rows.iter().map(token).collect::<Result<_>>()? })
    }

    pub(crate) async fn revoke_token(&self, permit: &Permit, token: Id) -> Result<()> {
        let caller = &permit.caller;
        let values = values![token, caller.org, caller.member, Role::Admin.number()];
        let revoke = must(REVOKE, values, Error::NotFound { what: "token" });
        self.change(permit, Action::RevokeToken, token, None, vec![revoke]).await
    }
}

/// A new token, and the statement that stores its digest.
pub(super) fn new_token(
    member: Id,
    device: Id,
    now: i64,
    seconds: u64,
) -> Result<(NewToken, (Step, Option<Error>))> {
    let (id, token) = (random()?, Secret::random().ok_or(Error::NoRandom)?);
    let expires = after(now, seconds);
    let add = step(ADD, values![digest(&token), id, member, device, now, expires]);
    Ok((NewToken { id, token, device, expires: time(expires) }, add))
}

/// The time that is this many seconds later.
pub(super) fn after(now: i64, seconds: u64) -> i64 {
    now.saturating_add_unsigned(seconds.saturating_mul(1000))
}

/// A time in seconds that a request may choose.
pub(super) fn duration(asked: Option<u64>, default: u64, most: u64) -> Result<u64> {
    let seconds = asked.unwrap_or(default);
    if (1..=most).contains(&seconds) {
        return Ok(seconds);
    }
    Err(Error::Invalid { what: format!("`seconds` must be between 1 and {most}") })
}
