import CarillonCore
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The tables of version 3 for outgoing calls. Each call is a row of its own, in a queue.
enum CallSchema {
    /// Moves the data of version 2, which had a lease on each host and port, and stored the times of calls with the subjects of
    /// the calls.
    static func bringUpToDate(_ db: Database) throws {
        try db.execute(sql: watch)
        try db.execute(sql: callbacks)
        try db.execute(sql: calls)
        try moveCalls(in: db)
        try db.execute(
            sql: """
                DROP TABLE disconnect_callback_2;
                DROP TABLE watch_2;
                DROP TABLE peer;
                """)
    }

    /// The table of watches, one for each watched channel. secret and token are sealed. told is the last failure of which the
    /// channel was notified. last_code and last_at are the result and the time of the last ping.
    private static let watch = """
        DROP INDEX watch_due;
        ALTER TABLE watch RENAME TO watch_2;
        CREATE TABLE watch (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            channel INTEGER NOT NULL UNIQUE REFERENCES channel ON DELETE CASCADE,
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            revision INTEGER NOT NULL DEFAULT 1,
            ping_address TEXT,
            ping_interval INTEGER,
            disconnect_address TEXT,
            callback_id TEXT NOT NULL,
            secret BLOB NOT NULL,
            token BLOB NOT NULL,
            told INTEGER,
            failures INTEGER NOT NULL DEFAULT 0,
            last_at INTEGER,
            last_code INTEGER,
            last_detail TEXT,
            created_at INTEGER NOT NULL,
            CHECK ((ping_address IS NULL) = (ping_interval IS NULL))
        ) STRICT;
        CREATE INDEX watch_of_device ON watch (device);

        -- How many watches an app has, and how many callbacks wait for it.
        CREATE TABLE watch_usage (
            app INTEGER PRIMARY KEY,
            watches INTEGER NOT NULL DEFAULT 0,
            callbacks INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TRIGGER watch_enters AFTER INSERT ON watch BEGIN
            INSERT INTO watch_usage (app, watches) VALUES (new.app, 1)
                ON CONFLICT (app) DO UPDATE SET watches = watches + 1;
        END;
        CREATE TRIGGER watch_leaves AFTER DELETE ON watch BEGIN
            UPDATE watch_usage SET watches = watches - 1 WHERE app = old.app;
            DELETE FROM watch_usage WHERE app = old.app AND watches = 0 AND callbacks = 0;
        END;

        INSERT INTO watch
            SELECT watch_2.serial, channel, channel.device, device.app, revision, ping_address, ping_interval,
                disconnect_address, callback_id, secret, token, told, failures, last_at, last_code, last_detail,
                watch_2.created_at
            FROM watch_2 JOIN channel ON channel.serial = watch_2.channel JOIN device ON device.serial = channel.device;
        -- A number is never used twice, nor is that of a watch that is gone.
        DELETE FROM sqlite_sequence WHERE name = 'watch';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'watch', seq FROM sqlite_sequence WHERE name = 'watch_2';
        """

    /// The table of callbacks: watched channels that ended, of which the backend was not notified yet.
    private static let callbacks = """
        DROP INDEX disconnect_callback_due;
        ALTER TABLE disconnect_callback RENAME TO disconnect_callback_2;
        CREATE TABLE disconnect_callback (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            channel INTEGER NOT NULL,
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            address TEXT NOT NULL,
            webhook_id TEXT NOT NULL UNIQUE,
            secret BLOB NOT NULL,
            token BLOB NOT NULL,
            reason TEXT NOT NULL,
            ended_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX disconnect_callback_of_app ON disconnect_callback (app);
        CREATE TRIGGER disconnect_callback_enters AFTER INSERT ON disconnect_callback BEGIN
            INSERT INTO watch_usage (app, callbacks) VALUES (new.app, 1)
                ON CONFLICT (app) DO UPDATE SET callbacks = callbacks + 1;
        END;
        CREATE TRIGGER disconnect_callback_leaves AFTER DELETE ON disconnect_callback BEGIN
            UPDATE watch_usage SET callbacks = callbacks - 1 WHERE app = old.app;
            DELETE FROM watch_usage WHERE app = old.app AND watches = 0 AND callbacks = 0;
        END;

        -- Whose they were was not kept: each is a device of its own, of an app that is none.
        INSERT INTO disconnect_callback
            SELECT serial, channel, -channel, 0, address, webhook_id, secret, token, reason, ended_at, attempts
            FROM disconnect_callback_2;
        DELETE FROM sqlite_sequence WHERE name = 'disconnect_callback';
        INSERT INTO sqlite_sequence (name, seq)
            SELECT 'disconnect_callback', seq FROM sqlite_sequence WHERE name = 'disconnect_callback_2';
        """

    private static let calls = """
        -- Calls of one app and one kind to one host and port. on_trial, failures and rests_until are its standing, which
        -- the lanes of an app to a peer have in common. head_at is when the first of its calls is ready, served_at when
        -- one was last begun. share is what calls are looked for by: app, kind, and standing.
        CREATE TABLE call_lane (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
            peer TEXT NOT NULL,
            host TEXT NOT NULL,
            on_trial INTEGER NOT NULL DEFAULT 1 CHECK (on_trial IN (0, 1)),
            failures INTEGER NOT NULL DEFAULT 0,
            rests_until INTEGER NOT NULL DEFAULT 0,
            served_at INTEGER NOT NULL DEFAULT 0,
            head_at INTEGER NOT NULL,
            size INTEGER NOT NULL DEFAULT 0,
            ready_at INTEGER NOT NULL GENERATED ALWAYS AS (max(head_at, rests_until)) VIRTUAL,
            share INTEGER NOT NULL GENERATED ALWAYS AS (app * 4 + kind * 2 + on_trial) VIRTUAL,
            UNIQUE (app, peer, kind)
        ) STRICT;
        CREATE INDEX call_lane_ready ON call_lane (share, ready_at);

        -- A call that is owed: for a watch that pings, or for a callback. It is due at a moment, that was set at another,
        -- and held until a third while it is leased; fence counts the leases.
        CREATE TABLE outward_call (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            lane INTEGER NOT NULL REFERENCES call_lane,
            device INTEGER NOT NULL,
            watch INTEGER UNIQUE REFERENCES watch ON DELETE CASCADE,
            callback INTEGER UNIQUE REFERENCES disconnect_callback ON DELETE CASCADE,
            due_at INTEGER NOT NULL,
            set_at INTEGER NOT NULL,
            held_until INTEGER NOT NULL DEFAULT 0,
            fence INTEGER NOT NULL DEFAULT 0,
            ready_at INTEGER NOT NULL GENERATED ALWAYS AS (max(due_at, held_until)) VIRTUAL,
            CHECK ((watch IS NULL) <> (callback IS NULL))
        ) STRICT;
        CREATE INDEX outward_call_ready ON outward_call (lane, ready_at);

        -- A lane is there as long as a call stands in it, and knows when its first one is ready.
        CREATE TRIGGER outward_call_enters AFTER INSERT ON outward_call BEGIN
            UPDATE call_lane SET size = size + 1, head_at = min(head_at, new.ready_at) WHERE serial = new.lane;
        END;
        CREATE TRIGGER outward_call_changes AFTER UPDATE OF due_at, held_until ON outward_call BEGIN
            UPDATE call_lane SET head_at = (SELECT min(ready_at) FROM outward_call WHERE lane = new.lane)
                WHERE serial = new.lane;
        END;
        CREATE TRIGGER outward_call_moves AFTER UPDATE OF lane ON outward_call WHEN old.lane <> new.lane BEGIN
            UPDATE call_lane SET size = size + 1, head_at = min(head_at, new.ready_at) WHERE serial = new.lane;
            DELETE FROM call_lane WHERE serial = old.lane AND size = 1;
            UPDATE call_lane SET size = size - 1,
                head_at = (SELECT min(ready_at) FROM outward_call WHERE lane = old.lane)
                WHERE serial = old.lane;
        END;
        CREATE TRIGGER outward_call_leaves AFTER DELETE ON outward_call BEGIN
            DELETE FROM call_lane WHERE serial = old.lane AND size = 1;
            UPDATE call_lane SET size = size - 1,
                head_at = (SELECT min(ready_at) FROM outward_call WHERE lane = old.lane)
                WHERE serial = old.lane;
        END;
        """

    private static func moveCalls(in db: Database) throws {
        let pings = try Row.fetchAll(
            db,
            sql: """
                SELECT watch_2.serial, watch.app, watch.device, peer.name AS peer, watch_2.due_at, watch_2.ping_interval
                FROM watch_2 JOIN watch ON watch.serial = watch_2.serial JOIN peer ON peer.serial = watch_2.ping_peer
                """)
        for row in pings {
            // The time at which the due time was set is not known. One interval before it is the best estimate.
            let due: Int64 = row["due_at"]
            try move(row, kind: 0, column: "watch", setAt: due - 1000 * row["ping_interval"], in: db)
        }
        let callbacks = try Row.fetchAll(
            db,
            sql: """
                SELECT old.serial, new.app, new.device, peer.name AS peer, old.due_at
                FROM disconnect_callback_2 AS old JOIN disconnect_callback AS new ON new.serial = old.serial
                JOIN peer ON peer.serial = old.peer
                """)
        for row in callbacks { try move(row, kind: 1, column: "callback", setAt: 0, in: db) }
    }

    private static func move(_ row: Row, kind: Int, column: String, setAt: Int64, in db: Database) throws {
        let peer: String = row["peer"]
        let host = peer.lastIndex(of: ":").map { String(peer[..<$0]) } ?? peer
        try db.execute(
            sql: "INSERT INTO call_lane (app, kind, peer, host, head_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            arguments: [row["app"] as Int64, kind, peer, host, Int64.max])
        try db.execute(
            sql: """
                INSERT INTO outward_call (lane, device, \(column), due_at, set_at)
                SELECT serial, ?, ?, ?, ? FROM call_lane WHERE app = ? AND kind = ? AND peer = ?
                """,
            arguments: [
                row["device"] as Int64, row["serial"] as Int64, row["due_at"] as Int64, setAt, row["app"] as Int64, kind,
                peer,
            ])
    }
}
