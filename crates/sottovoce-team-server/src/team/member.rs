//! Members: listed, changed, removed

use std::collections::BTreeMap;

use crate::api::{Action, ChangeMember, Id, MAX_PROFILE, Member, MemberList, Role, Sealed};
use crate::error::{Error, Result};
use crate::team::caller::{Needs, Permit, permitted};
use crate::team::text::{Stored, id};
use crate::team::{Team, must, step, time, values};

const LIST: &str = concat!(
    "SELECT id, role, created, profile FROM member WHERE org = $6 AND ",
    permitted!(),
    " ORDER BY created, id"
);
const DEVICES: &str = "\
SELECT DISTINCT t.member, t.device FROM token t JOIN member m ON m.id = t.member \
WHERE m.org = $1 AND t.expires > $2 ORDER BY t.member, t.device";
const SET_PROFILE: &str = "UPDATE member SET profile = $2 WHERE id = $1 RETURNING id";
/// Nobody changes or removes somebody of a higher role.
const SET_ROLE: &str = "\
UPDATE member SET role = $3 WHERE id = $1 AND org = $2 AND role <= (SELECT role FROM member WHERE id = $4) RETURNING id";
/// What somebody could not invite any more was not meant to stay valid.
const WITHDRAW: &str = "DELETE FROM invitation WHERE author = $1 AND role > $2";
const REMOVE: &str = "\
DELETE FROM member WHERE id = $1 AND org = $2 AND role <= (SELECT role FROM member WHERE id = $3) RETURNING id";
const HAS_OWNER: &str = "SELECT 1 FROM member WHERE org = $1 AND role = $2";
const EXISTS: &str = "SELECT 1 FROM member WHERE id = $1 AND org = $2";

impl Team {
    pub(crate) async fn members(&self, permit: &Permit) -> Result<MemberList> {
        let org = permit.caller.org;
        let devices = self.rows(DEVICES, values![org, self.now()]).await?;
        let mut of_member: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
        for row in &devices {
            of_member.entry(id(row, 0)?).or_default().push(id(row, 1)?);
        }
        let mut rows = self.read(permit, LIST, values![org]).await?;
        let mut member = |row: &mut crate::database::Row| {
            let member = id(row, 0)?;
            Ok(Member {
                id: member,
                role: Role::read(row, 1)?,
                joined: time(row.int(2)),
                profile: row.take(3).map(Sealed::from),
                devices: of_member.remove(&member).unwrap_or_default(),
            })
        };
        Ok(MemberList { members: rows.iter_mut().map(&mut member).collect::<Result<_>>()? })
    }

    pub(crate) async fn change_member(
        &self,
        permit: &Permit,
        member: Id,
        change: ChangeMember,
    ) -> Result<()> {
        let caller = &permit.caller;
        if change.profile.is_some() && member != caller.member {
            return Err(Error::Forbidden { what: "members change their own profile alone" });
        }
        check_profile(change.profile.as_ref())?;
        let profile = change.profile.map(Sealed::into_bytes);
        let set_profile = profile.map(|profile| step(SET_PROFILE, values![member, profile]));
        let Some(role) = change.role else {
            return self.write(permit, set_profile.into_iter().collect()).await;
        };
        let needs = Needs::Role(Role::Admin.max(role));
        let still = if role >= Role::Admin { role.number() } else { 0 };
        let mut steps = vec![
            must(EXISTS, values![member, caller.org], Error::NotFound { what: "member" }),
            must(
                SET_ROLE,
                values![member, caller.org, role.number(), caller.member],
                Error::Forbidden { what: "the member has a higher role" },
            ),
            step(WITHDRAW, values![member, still]),
            must(HAS_OWNER, values![caller.org, Role::Owner.number()], no_owner()),
        ];
        steps.extend(set_profile);
        let permit = caller.clone().permit(needs)?;
        self.change(&permit, Action::ChangeRole, member, None, steps).await
    }

    pub(crate) async fn remove_member(&self, permit: &Permit, member: Id) -> Result<()> {
        let caller = &permit.caller;
        let steps = vec![
            must(EXISTS, values![member, caller.org], Error::NotFound { what: "member" }),
            must(
                REMOVE,
                values![member, caller.org, caller.member],
                Error::Forbidden { what: "the member has a higher role" },
            ),
            must(HAS_OWNER, values![caller.org, Role::Owner.number()], no_owner()),
        ];
        self.change(permit, Action::Remove, member, None, steps).await
    }
}

/// Checks the length of a profile.
pub(crate) fn check_profile(profile: Option<&Sealed>) -> Result<()> {
    match profile.is_some_and(|profile| profile.len() > MAX_PROFILE) {
        true => Err(Error::TooLarge { what: "a profile", most: MAX_PROFILE }),
        false => Ok(()),
    }
}

fn no_owner() -> Error {
    Error::Conflict { what: "an organisation must keep an owner" }
}
