//! The contract of a database, on both engines

use std::collections::BTreeSet;

use sottovoce_team_server::{
    Database, DatabaseOptions, Error, Outcome, RecordBatch, RecordRow, Row, Step, Value,
    open_database,
};

use crate::harness::{Engine, engines};

fn step(sql: &'static str, values: Vec<Value>) -> Step {
    Step { sql, values, must: false }
}

fn must(sql: &'static str, values: Vec<Value>) -> Step {
    Step { sql, values, must: true }
}

async fn rows(database: &dyn Database, sql: &'static str, values: Vec<Value>) -> Vec<Row> {
    match database.transact(vec![step(sql, values)]).await.unwrap() {
        Outcome::Done(mut rows) => rows.remove(0),
        Outcome::Refused(at) => panic!("step {at} was refused"),
    }
}

const ADD_ORG: &str = "INSERT INTO org (id, created, audited) VALUES ($1, $2, $3)";
const ORGS: &str = "SELECT id, created, audited FROM org ORDER BY id";

fn org(n: u8, created: i64) -> Step {
    step(ADD_ORG, vec![vec![n; 16].into(), created.into(), 0.into()])
}

async fn with_conversation(engine: &Engine) -> std::sync::Arc<dyn Database> {
    let database = engine.open().await;
    let conversation =
        "INSERT INTO conversation (id, org, created, last, bytes) VALUES ($1, $2, 0, 0, 0)";
    let add = step(conversation, vec![vec![7; 16].into(), vec![1; 16].into()]);
    let mut steps = vec![org(1, 0), add];
    let member = "INSERT INTO member (id, org, role, created) VALUES ($1, $2, 1, 0)";
    let token = "INSERT INTO token (sha256, id, member, device, created, expires) VALUES ($1, $2, $2, $2, 0, 9)";
    let grant = "INSERT INTO grant_ (conversation, member, level) VALUES ($1, $2, 2)";
    for (allow, first, second) in [
        (member, vec![2; 16], vec![1; 16]),
        (token, vec![3; 32], vec![2; 16]),
        (grant, vec![7; 16], vec![2; 16]),
    ] {
        steps.push(step(allow, vec![first.into(), second.into()]));
    }
    database.transact(steps).await.unwrap();
    database
}

fn batch(records: impl IntoIterator<Item = u8>) -> RecordBatch {
    let record = |n| RecordRow { rid: vec![n; 32], kind: 1, sealed: vec![n; 10], forgets: None };
    RecordBatch {
        token: vec![3; 32],
        level: 2,
        conversation: vec![7; 16],
        device: vec![8; 16],
        at: 5,
        records: records.into_iter().map(record).collect(),
    }
}

#[tokio::test]
async fn values_come_back_as_they_were_given() {
    for engine in engines().await {
        let database = engine.open().await;
        let extremes = [(0, i64::MIN), (1, i64::MAX), (255, -1)];
        for (n, created) in extremes {
            database.transact(vec![org(n, created)]).await.unwrap();
        }
        let found = rows(&*database, ORGS, Vec::new()).await;
        let expected =
            extremes.map(|(n, created)| Row(vec![vec![n; 16].into(), created.into(), 0.into()]));
        assert_eq!(found, expected, "{}", engine.address);
        let list = Value::List(vec![vec![0; 16], vec![255; 16], vec![3; 16]]);
        let found = rows(
            &*database,
            "SELECT created FROM org WHERE id IN_LIST($1) ORDER BY id",
            vec![list],
        )
        .await;
        assert_eq!(found.iter().map(|row| row.int(0)).collect::<Vec<_>>(), [i64::MIN, -1]);
        let list = Value::List(vec![vec![255; 16], vec![3; 16]]);
        let each = "SELECT p.value, o.created FROM EACH($1) p LEFT JOIN org o ON o.id = substr(p.value, 1, 16) ORDER BY p.value";
        let found = rows(&*database, each, vec![list]).await;
        assert_eq!(
            found,
            [
                Row(vec![vec![3; 16].into(), Value::Null]),
                Row(vec![vec![255; 16].into(), (-1).into()])
            ]
        );
        // Null, empty and other bytes stay apart, whatever they look like.
        let member =
            "INSERT INTO member (id, org, role, created, profile) VALUES ($1, $2, 1, 0, $3)";
        for (n, profile) in [(1, None), (2, Some(Vec::new())), (3, Some(b"12'; --".to_vec()))] {
            let values = vec![vec![n; 16].into(), vec![0; 16].into(), profile.into()];
            database.transact(vec![step(member, values)]).await.unwrap();
        }
        let found = rows(&*database, "SELECT profile FROM member ORDER BY id", Vec::new()).await;
        assert_eq!(found[0].bytes(0), None);
        assert_eq!(found[1].bytes(0), Some(&[][..]));
        assert_eq!(found[2].bytes(0), Some(&b"12'; --"[..]));
    }
}

#[tokio::test]
async fn a_transaction_happens_as_a_whole_or_not_at_all() {
    for engine in engines().await {
        let database = engine.open().await;
        let nothing = must("SELECT 1 FROM org WHERE created = 99", Vec::new());
        let refused =
            database.transact(vec![org(1, 1), org(2, 2), nothing, org(3, 3)]).await.unwrap();
        assert_eq!(refused, Outcome::Refused(2));
        let conflict = database.transact(vec![org(1, 1), org(1, 2)]).await;
        assert!(matches!(conflict, Err(Error::Conflict { .. })), "{conflict:?}");
        let wrong = database
            .transact(vec![org(1, 1), step("SELECT nothing FROM nowhere", Vec::new())])
            .await;
        assert!(matches!(wrong, Err(Error::Database { .. })), "{wrong:?}");
        assert!(rows(&*database, ORGS, Vec::new()).await.is_empty());
        // The connections are fit for use after all that.
        for n in 0..40 {
            let something = must("SELECT 1 FROM org WHERE created = $1", vec![i64::from(n).into()]);
            let done = database.transact(vec![org(n, n.into()), something]).await.unwrap();
            assert!(matches!(done, Outcome::Done(_)));
        }
        assert_eq!(rows(&*database, ORGS, Vec::new()).await.len(), 40);
    }
}

#[tokio::test]
async fn a_record_keeps_its_first_position() {
    for engine in engines().await {
        let database = with_conversation(&engine).await;
        let first = database.append(&batch([1, 2, 3]), &[]).await.unwrap().unwrap();
        assert_eq!((first.positions, first.last), (vec![1, 2, 3], 3));
        let again = database.append(&batch([3, 4, 1]), &[]).await.unwrap().unwrap();
        assert_eq!((again.positions, again.last), (vec![3, 4, 1], 4));
        let known = database.append(&batch([2, 1]), &[]).await.unwrap().unwrap();
        assert_eq!((known.positions, known.last), (vec![2, 1], 4));
        let mut elsewhere = batch([9]);
        elsewhere.conversation = vec![6; 16];
        assert_eq!(database.append(&elsewhere, &[]).await.unwrap(), None);
        let found = rows(&*database, "SELECT last, bytes FROM conversation", Vec::new()).await;
        assert_eq!((found[0].int(0), found[0].int(1)), (4, 40));
    }
}

#[tokio::test]
async fn nothing_is_appended_by_a_token_that_does_not_allow_it() {
    for engine in engines().await {
        let database = with_conversation(&engine).await;
        let revoke = "DELETE FROM token";
        let reduce = "UPDATE grant_ SET level = 1";
        let late = RecordBatch { at: 9, ..batch([1]) };
        let above = RecordBatch { level: 3, ..batch([1]) };
        let foreign = RecordBatch { token: vec![4; 32], ..batch([1]) };
        for refused in [&late, &above, &foreign] {
            assert_eq!(database.append(refused, &[org(5, 5)]).await.unwrap(), None);
        }
        assert!(database.append(&batch([1]), &[]).await.unwrap().is_some());
        for taken in [reduce, revoke] {
            database.transact(vec![step(taken, Vec::new())]).await.unwrap();
            // Also where the record is there already, so that the answer tells nobody that it is.
            for records in [batch([1]), batch([2])] {
                assert_eq!(database.append(&records, &[org(5, 5)]).await.unwrap(), None, "{taken}");
            }
        }
        assert_eq!(rows(&*database, "SELECT pos FROM record", Vec::new()).await.len(), 1);
        assert_eq!(rows(&*database, ORGS, Vec::new()).await.len(), 1, "the steps did not run");
    }
}

#[tokio::test]
async fn a_failing_step_takes_the_append_with_it() {
    for engine in engines().await {
        let database = with_conversation(&engine).await;
        let failing = [step("SELECT nothing FROM nowhere", Vec::new())];
        assert!(database.append(&batch([1]), &failing).await.is_err());
        assert!(rows(&*database, "SELECT pos FROM record", Vec::new()).await.is_empty());
        let appended = database.append(&batch([2]), &[org(5, 5)]).await.unwrap().unwrap();
        assert_eq!(appended.positions, [1]);
        assert_eq!(rows(&*database, ORGS, Vec::new()).await.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_with_the_same_records_get_the_same_positions_without_holes() {
    for engine in engines().await {
        let database = with_conversation(&engine).await;
        // Several processes.
        let others = [engine.open().await, engine.open().await];
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8_u8 {
            let database = std::sync::Arc::clone(if writer < 4 {
                &database
            } else {
                &others[usize::from(writer % 2)]
            });
            writers.spawn(async move {
                let mut found = Vec::new();
                for start in 0..20_u8 {
                    // Neighbours overlap, in different orders.
                    let mut records: Vec<u8> = (start * 4..start * 4 + 8).collect();
                    records.rotate_left(usize::from(writer));
                    let appended =
                        database.append(&batch(records.clone()), &[]).await.unwrap().unwrap();
                    found.extend(records.into_iter().zip(appended.positions));
                }
                found
            });
        }
        let found: BTreeSet<(u8, i64)> = writers.join_all().await.into_iter().flatten().collect();
        let positions: BTreeSet<i64> = found.iter().map(|(_, pos)| *pos).collect();
        assert_eq!(found.len(), 84, "each record has one position: {}", engine.address);
        assert_eq!(positions, (1..=84).collect());
        let last = rows(&*database, "SELECT last, bytes FROM conversation", Vec::new()).await;
        assert_eq!((last[0].int(0), last[0].int(1)), (84, 840));
    }
}

#[tokio::test]
async fn the_tables_of_the_version_before_are_brought_up_to_date() {
    for engine in engines().await {
        // As the version before left them.
        let database = with_conversation(&engine).await;
        database.append(&batch([1, 2]), &[]).await.unwrap();
        for undo in [
            "DROP TABLE artifact",
            "DROP TABLE pack",
            "DROP TABLE doomed",
            "DROP TABLE upkeep",
            "ALTER TABLE conversation DROP COLUMN changed",
        ] {
            database
                .transact(vec![step(undo, Vec::new()), step("SELECT 1", Vec::new())])
                .await
                .unwrap();
        }
        database
            .transact(vec![step("DELETE FROM schema_version WHERE version > 1", Vec::new())])
            .await
            .unwrap();
        drop(database);
        // Several servers start at once.
        let (one, two, three) = tokio::join!(engine.open(), engine.open(), engine.open());
        for database in [one, two, three] {
            assert!(rows(&*database, "SELECT object FROM doomed", Vec::new()).await.is_empty());
            assert_eq!(rows(&*database, "SELECT pos FROM record", Vec::new()).await.len(), 2);
            let changed = rows(&*database, "SELECT changed FROM conversation", Vec::new()).await;
            assert_eq!(changed[0].int(0), 5, "when the last record was appended");
            let versions =
                rows(&*database, "SELECT version FROM schema_version ORDER BY version", Vec::new())
                    .await;
            assert_eq!(versions.iter().map(|row| row.int(0)).collect::<Vec<_>>(), [1, 2, 3]);
        }
    }
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    for engine in engines().await {
        let database = engine.open().await;
        database
            .transact(vec![step("INSERT INTO schema_version VALUES (99)", Vec::new())])
            .await
            .unwrap();
        let error = open_database(&engine.address, DatabaseOptions::default()).await.unwrap_err();
        assert!(matches!(error, Error::Newer { found: 99, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_not_shown() {
    for address in [
        "postgres://user:hunter2@[",
        "mysql://user:hunter2@host/x",
        "",
        "postgres://user:hunter2@127.0.0.1",
    ] {
        let error = open_database(address, DatabaseOptions::default()).await.unwrap_err();
        assert!(matches!(error, Error::DatabaseAddress { .. }), "{address}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
    // Nobody listens there.
    let error = open_database("postgres://user:hunter2@127.0.0.1:1/x", DatabaseOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unavailable), "{error:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_sqlite_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let engine = engines().await.remove(0);
    let database = with_conversation(&engine).await;
    database.append(&batch([1]), &[]).await.unwrap();
    let wal = engine.file().with_extension("sqlite-wal");
    for file in [engine.file(), wal] {
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            file.display()
        );
    }
    let error = open_database("/nowhere/at/all", DatabaseOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
}
