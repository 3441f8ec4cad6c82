//! The tables, and the migrations from each version to the next
//!
//! Both engines read the same text. SQLite takes the names of types as they are, and stores bytes as bytes.

/// The key of the advisory lock under which a database is migrated.
pub(super) const LOCK: i64 = 0x736f_7474_6f76_6f63;

/// What turns version `n` into version `n + 1`.
pub(super) const MIGRATIONS: [&[Change]; 3] = [
    &[
        Change::Both(
            "\
CREATE TABLE org (id bytea PRIMARY KEY, created bigint NOT NULL, audited bigint NOT NULL);
CREATE TABLE member (id bytea PRIMARY KEY, org bytea NOT NULL REFERENCES org(id), role smallint NOT NULL, \
 created bigint NOT NULL, profile bytea);
CREATE INDEX member_org ON member(org);
CREATE TABLE token (sha256 bytea PRIMARY KEY, id bytea NOT NULL UNIQUE, \
 member bytea NOT NULL REFERENCES member(id) ON DELETE CASCADE, device bytea NOT NULL, \
 created bigint NOT NULL, expires bigint NOT NULL);
CREATE INDEX token_member ON token(member);
CREATE TABLE conversation (id bytea PRIMARY KEY, org bytea NOT NULL REFERENCES org(id), \
 created bigint NOT NULL, last bigint NOT NULL, bytes bigint NOT NULL);
CREATE INDEX conversation_org ON conversation(org);
CREATE TABLE grant_ (conversation bytea NOT NULL REFERENCES conversation(id) ON DELETE CASCADE, \
 member bytea NOT NULL REFERENCES member(id) ON DELETE CASCADE, level smallint NOT NULL, \
 PRIMARY KEY (conversation, member));
CREATE INDEX grant_member ON grant_(member);
CREATE TABLE invitation (sha256 bytea PRIMARY KEY, id bytea NOT NULL UNIQUE, \
 org bytea NOT NULL REFERENCES org(id), role smallint NOT NULL, \
 author bytea NOT NULL REFERENCES member(id) ON DELETE CASCADE, expires bigint NOT NULL);
CREATE INDEX invitation_author ON invitation(author);
CREATE TABLE invitation_grant (invitation bytea NOT NULL REFERENCES invitation(id) ON DELETE CASCADE, \
 conversation bytea NOT NULL REFERENCES conversation(id) ON DELETE CASCADE, level smallint NOT NULL, \
 PRIMARY KEY (invitation, conversation));
CREATE INDEX invitation_grant_conversation ON invitation_grant(conversation);
CREATE TABLE audit (org bytea NOT NULL REFERENCES org(id), n bigint NOT NULL, at bigint NOT NULL, \
 member bytea NOT NULL, action smallint NOT NULL, target bytea NOT NULL, subject bytea, PRIMARY KEY (org, n))",
        ),
        // The sealed contents are empty once the record is forgotten, and null while they lie in a pack. Ciphertext does not
        // compress. Eight partitions: more exceed the locks that PostgreSQL takes fast.
        Change::Postgres(
            "\
CREATE TABLE record (pos bigint NOT NULL, at bigint NOT NULL, size integer NOT NULL, kind smallint NOT NULL, \
 conversation bytea NOT NULL, rid bytea NOT NULL, device bytea NOT NULL, sealed bytea, forgets bytea, \
 PRIMARY KEY (conversation, pos), UNIQUE (conversation, rid)) PARTITION BY HASH (conversation);
ALTER TABLE record ALTER COLUMN sealed SET STORAGE EXTERNAL;
DO $$ BEGIN FOR n IN 0..7 LOOP EXECUTE format(\
 'CREATE TABLE record_%s PARTITION OF record FOR VALUES WITH (MODULUS 8, REMAINDER %s)', n, n); END LOOP; END $$",
        ),
        Change::Sqlite(
            "\
CREATE TABLE record (pos bigint NOT NULL, at bigint NOT NULL, size integer NOT NULL, kind smallint NOT NULL, \
 conversation bytea NOT NULL, rid bytea NOT NULL, device bytea NOT NULL, sealed bytea, forgets bytea, \
 PRIMARY KEY (conversation, pos), UNIQUE (conversation, rid))",
        ),
    ],
    // `doomed` has the objects that nothing refers to yet, or any more.
    &[Change::Both(
        "\
CREATE TABLE artifact (conversation bytea NOT NULL REFERENCES conversation(id) ON DELETE CASCADE, \
 id bytea NOT NULL, object bytea NOT NULL, digest bytea NOT NULL, size bigint NOT NULL, \
 PRIMARY KEY (conversation, id));
CREATE TABLE pack (conversation bytea NOT NULL REFERENCES conversation(id) ON DELETE CASCADE, \
 first bigint NOT NULL, last bigint NOT NULL, object bytea NOT NULL, digest bytea NOT NULL, \
 dirty smallint NOT NULL, PRIMARY KEY (conversation, first));
CREATE INDEX pack_dirty ON pack(conversation) WHERE dirty = 1;
CREATE TABLE doomed (object bytea PRIMARY KEY, due bigint NOT NULL)",
    )],
    // When the last record was appended: members notice by it that other records have its positions now.
    &[Change::Both(
        "\
ALTER TABLE conversation ADD COLUMN changed bigint NOT NULL DEFAULT 0;
UPDATE conversation SET changed = coalesce((\
 SELECT r.at FROM record r WHERE r.conversation = conversation.id AND r.pos = conversation.last), created);
CREATE TABLE upkeep (due bigint NOT NULL);
INSERT INTO upkeep VALUES (0)",
    )],
];

/// Statements of a migration, and for which engine.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Both(&'static str),
    Postgres(&'static str),
    Sqlite(&'static str),
}
