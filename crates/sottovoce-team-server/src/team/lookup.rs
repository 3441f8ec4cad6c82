//! Lookups of callers: those that come at the same time share one statement
//!
//! Every request begins with one, since a token that was revoked must open nothing from that moment on. While a statement runs, what
//! comes next waits for the next statement, so that what it finds is never older than the question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sottovoce_net::lock;
use tokio::sync::oneshot;

use crate::database::{Database, Outcome, Row, Step, Value};
use crate::error::{Error, Result};

/// Finds who has a token, and what that member may do with a conversation. Each value is the digest of a token and the identifier
/// of a conversation, one after the other.
pub const FIND_CALLERS: &str = "\
SELECT p.value, m.id, m.org, m.role, t.device, t.id, t.expires, c.id, c.last, g.level \
FROM EACH($1) p JOIN token t ON t.sha256 = substr(p.value, 1, 32) JOIN member m ON m.id = t.member \
LEFT JOIN conversation c ON c.id = substr(p.value, 33, 16) AND c.org = m.org \
LEFT JOIN grant_ g ON g.conversation = c.id AND g.member = m.id";

/// The most lookups of one statement.
const TOGETHER: usize = 256;

/// Lookups that wait for a statement.
#[derive(Debug, Default)]
pub(super) struct Lookups(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_running: bool,
}

#[derive(Debug)]
struct Waiting {
    key: Vec<u8>,
    answer: oneshot::Sender<Result<Option<Row>>>,
}

impl Lookups {
    /// Finds the row of a key.
    pub(super) async fn find(
        self: &Arc<Self>,
        database: &Arc<dyn Database>,
        key: Vec<u8>,
    ) -> Result<Option<Row>> {
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut queue = lock(&self.0);
            queue.waiting.push(Waiting { key, answer });
            !std::mem::replace(&mut queue.is_running, true)
        };
        if is_first {
            // A task of its own: whoever asked may leave, and the others still wait.
            tokio::spawn(Arc::clone(self).run(Arc::clone(database)));
        }
        answered.await.map_err(|_| Error::Unavailable)?
    }

    async fn run(self: Arc<Self>, database: Arc<dyn Database>) {
        loop {
            let waiting = {
                let mut queue = lock(&self.0);
                let some = queue.waiting.len().min(TOGETHER);
                if some == 0 {
                    queue.is_running = false;
                    return;
                }
                queue.waiting.drain(..some).collect::<Vec<_>>()
            };
            let list = waiting.iter().map(|waiting| waiting.key.clone()).collect();
            let step = Step { sql: FIND_CALLERS, values: vec![Value::List(list)], must: false };
            let found = database.transact(vec![step]).await;
            let rows: Result<HashMap<Vec<u8>, Row>> = found.map(|outcome| match outcome {
                Outcome::Done(rows) => rows
                    .into_iter()
                    .flatten()
                    .filter_map(|row| Some((row.bytes(0)?.to_vec(), row)))
                    .collect(),
                Outcome::Refused(_) => HashMap::new(),
            });
            for Waiting { key, answer } in waiting {
                let row = rows.as_ref().map(|rows| rows.get(&key).cloned()).map_err(same);
                // Who asked may have left.
                drop(answer.send(row));
            }
        }
    }
}

/// The error of a statement, for each of those that it was for.
fn same(error: &Error) -> Error {
    match error {
        Error::Busy => Error::Busy,
        Error::Database { code } => Error::Database { code: code.clone() },
        _ => Error::Unavailable,
    }
}
