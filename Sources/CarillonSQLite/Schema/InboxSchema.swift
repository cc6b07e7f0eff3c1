import CarillonCore
import GRDB

/// The tables of version 4 for inboxes: waiting messages and outcomes have separate tables, and due times are grouped in buckets.
enum InboxSchema {
    static func bringUpToDate(_ db: Database) throws {
        try db.execute(sql: rename)
        try db.execute(sql: tables)
        try db.execute(sql: move)
        try fillBuckets(in: db)
        try db.execute(sql: "DROP TABLE envelope_3; DROP TABLE idempotency_3;")
    }

    private static let rename = """
        DROP INDEX envelope_waiting;
        DROP INDEX envelope_waiting_due;
        DROP INDEX envelope_topic;
        DROP INDEX envelope_due;
        DROP INDEX envelope_final;
        DROP INDEX idempotency_end;
        DROP INDEX idempotency_of_device;
        ALTER TABLE envelope RENAME TO envelope_3;
        ALTER TABLE idempotency RENAME TO idempotency_3;
        """

    private static let tables = """
        -- A body that many envelopes point to. Once it is released it goes with the last of them.
        CREATE TABLE shared_content (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            is_released INTEGER NOT NULL DEFAULT 0,
            body BLOB NOT NULL
        ) STRICT;
        CREATE INDEX shared_content_released ON shared_content (serial) WHERE is_released;

        -- What waits. size is what it counts for; the body comes last, so that nothing else is read past it.
        CREATE TABLE envelope (
            position INTEGER PRIMARY KEY,
            secret BLOB NOT NULL CHECK (length(secret) = 16),
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            origin_kind INTEGER NOT NULL,
            origin INTEGER NOT NULL,
            origin_id BLOB NOT NULL CHECK (length(origin_id) = 16),
            kind INTEGER NOT NULL,
            code INTEGER,
            size INTEGER NOT NULL,
            accepted_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            topic TEXT,
            coding TEXT,
            encryption TEXT,
            crypto_key TEXT,
            content INTEGER REFERENCES shared_content,
            body BLOB
        ) STRICT;
        CREATE INDEX envelope_of_device ON envelope (device, position);
        CREATE UNIQUE INDEX envelope_topic ON envelope (origin_kind, origin, device, topic) WHERE topic IS NOT NULL;
        CREATE INDEX envelope_content ON envelope (content) WHERE content IS NOT NULL;

        -- What became of messages, for those who ask.
        CREATE TABLE outcome (
            position INTEGER PRIMARY KEY,
            secret BLOB NOT NULL CHECK (length(secret) = 16),
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            origin_kind INTEGER NOT NULL,
            origin INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            accepted_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            outcome TEXT NOT NULL,
            code INTEGER,
            final_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX outcome_of_device ON outcome (device, position);

        -- When time changes an envelope or an outcome next: it expires, or it is forgotten. See DueBucket.
        CREATE TABLE due (
            bucket INTEGER NOT NULL,
            position INTEGER NOT NULL,
            PRIMARY KEY (bucket, position)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE idempotency (
            origin_kind INTEGER NOT NULL,
            origin INTEGER NOT NULL,
            key_hash BLOB NOT NULL,
            fingerprint BLOB NOT NULL,
            position INTEGER NOT NULL,
            secret BLOB NOT NULL,
            device INTEGER NOT NULL,
            accepted_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            valid_until INTEGER NOT NULL,
            PRIMARY KEY (origin_kind, origin, key_hash)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX idempotency_end ON idempotency (valid_until);
        CREATE INDEX idempotency_of_device ON idempotency (device, valid_until);
        """

    /// Moves the rows. Outcomes of envelopes without a sender, which no client can read, are not moved.
    private static let move = """
        INSERT INTO envelope SELECT position, secret, device, app, 0, channel, channel_id, kind, event_code,
            coalesce(length(body), 0) + \(Envelope.overhead), accepted_at, expires_at, topic, coding, encryption, crypto_key,
            NULL, body FROM envelope_3 WHERE outcome IS NULL;
        INSERT INTO outcome SELECT position, secret, device, app, 0, channel, kind, accepted_at, expires_at, outcome,
            outcome_code, final_at FROM envelope_3 WHERE outcome IS NOT NULL AND kind = 0;
        INSERT INTO idempotency SELECT 0, channel, key_hash, fingerprint, position, secret, device, accepted_at, expires_at,
            valid_until FROM idempotency_3;
        """

    private static func fillBuckets(in db: Database) throws {
        let insert = try db.cachedStatement(sql: "INSERT INTO due (bucket, position) VALUES (?, ?)")
        let rows = try Row.fetchCursor(db, sql: "SELECT position, accepted_at, due_at FROM envelope_3")
        while let row = try rows.next() {
            let bucket = DueBucket.of(row.timestamp("due_at"), since: row.timestamp("accepted_at"))
            try insert.execute(arguments: [bucket, row["position"] as Int64])
        }
    }
}
