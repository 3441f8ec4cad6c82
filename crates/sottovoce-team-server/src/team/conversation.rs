//! Conversations: created, listed, deleted

use sha2::{Digest, Sha256};

use crate::api::{Action, Conversation, ConversationList, Id, Level, NewConversation, Role};
use crate::database::Row;
use crate::error::{Error, Result};
use crate::team::caller::{Needs, Permit, permitted};
use crate::team::organisation::random;
use crate::team::text::{Stored, id};
use crate::team::{Team, must, step, time, values};

const HAS_ROOM: &str = "SELECT 1 WHERE (SELECT count(*) FROM conversation WHERE org = $1) < $2";
const CREATE: &str = "INSERT INTO conversation (id, org, created, changed, last, bytes) VALUES ($1, $2, $3, $3, 0, 0)";
const GRANT: &str = "INSERT INTO grant_ (conversation, member, level) VALUES ($1, $2, $3)";
const LIST_GRANTED: &str = concat!(
    "SELECT c.id, c.last, c.bytes, c.created, g.level, c.changed FROM grant_ g JOIN conversation c ON c.id = g.conversation \
     WHERE g.member = $6 AND ",
    permitted!(),
    " ORDER BY c.id"
);
const LIST_ALL: &str = concat!(
    "SELECT c.id, c.last, c.bytes, c.created, g.level, c.changed FROM conversation c \
     LEFT JOIN grant_ g ON g.conversation = c.id AND g.member = $6 WHERE c.org = $7 AND ",
    permitted!(),
    " ORDER BY c.id"
);

/// The row of the conversation goes first: nobody appends to it after that.
const DELETE: [&str; 4] = [
    "INSERT INTO doomed (object, due) SELECT object, $2 FROM artifact WHERE conversation = $1",
    "INSERT INTO doomed (object, due) SELECT object, $2 FROM pack WHERE conversation = $1",
    "DELETE FROM conversation WHERE id = $1",
    "DELETE FROM record WHERE conversation = $1",
];
/// Holds the row of a conversation until the end of the transaction.
pub(super) const HOLD: &str = "UPDATE conversation SET last = last WHERE id = $1 RETURNING last";

impl Team {
    pub(crate) async fn create_conversation(&self, permit: &Permit) -> Result<NewConversation> {
        let (caller, conversation) = (&permit.caller, random()?);
        let room = values![caller.org, i64::from(self.quotas.conversations)];
        let steps = vec![
            must(HAS_ROOM, room, Error::Full { what: "conversations" }),
            step(CREATE, values![conversation, caller.org, self.now()]),
            step(GRANT, values![conversation, caller.member, Level::Manage.number()]),
        ];
        self.change(permit, Action::CreateConversation, conversation, None, steps).await?;
        Ok(NewConversation { id: conversation })
    }

    /// The conversations that the caller may read, and for an administrator all others without their contents.
    pub(crate) async fn conversations(&self, permit: &Permit) -> Result<ConversationList> {
        let caller = &permit.caller;
        let all = async {
            let admin = caller.clone().permit(Needs::Role(Role::Admin))?;
            self.read(&admin, LIST_ALL, values![caller.member, caller.org]).await
        };
        let rows = match all.await {
            // No administrator, or none any more.
            Err(Error::Forbidden { .. }) => {
                self.read(permit, LIST_GRANTED, values![caller.member]).await?
            }
            all => all?,
        };
        let conversations: Vec<_> = rows.iter().map(conversation).collect::<Result<_>>()?;
        let mut hash = Sha256::new();
        for conversation in &conversations {
            hash.update(conversation.id.as_bytes());
            hash.update(conversation.last.to_be_bytes());
            hash.update(conversation.changed.as_millisecond().to_be_bytes());
            hash.update([conversation.level.map_or(0, |level| level.number() as u8)]);
        }
        let seen = hash.finalize().get(..16).and_then(Id::from_slice).unwrap_or(Id::new([0; 16]));
        Ok(ConversationList { conversations, seen })
    }

    pub(crate) async fn delete_conversation(&self, permit: &Permit) -> Result<()> {
        let (place, now) = (permit.place()?, self.now());
        let [artifacts, packs, conversation, records] = DELETE;
        let steps = vec![
            must(HOLD, values![place.id], Error::NotFound { what: "conversation" }),
            step(artifacts, values![place.id, now]),
            step(packs, values![place.id, now]),
            step(conversation, values![place.id]),
            step(records, values![place.id]),
        ];
        self.change(permit, Action::DeleteConversation, place.id, None, steps).await?;
        self.sweep_some().await;
        Ok(())
    }
}

fn conversation(row: &Row) -> Result<Conversation> {
    Ok(Conversation {
        id: id(row, 0)?,
        last: row.int(1).unsigned_abs(),
        bytes: row.int(2).unsigned_abs(),
        created: time(row.int(3)),
        changed: time(row.int(5)),
        level: row.maybe_int(4).and_then(Level::from_number),
    })
}
