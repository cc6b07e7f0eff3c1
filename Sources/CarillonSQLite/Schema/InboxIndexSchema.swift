import CarillonCore
import GRDB

/// The tables of version 5: the index of inboxes and the due times are written for many messages together, not with each message.
enum InboxIndexSchema {
    static let changes = """
        -- Where what a device has stands, as far as it is not in the log below. See InboxIndex.
        CREATE TABLE inbox_index (
            device INTEGER NOT NULL,
            is_final INTEGER NOT NULL,
            position INTEGER NOT NULL,
            size INTEGER NOT NULL,
            PRIMARY KEY (device, is_final, position)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO inbox_index SELECT device, 0, position, size FROM envelope ORDER BY device, position;
        INSERT INTO inbox_index SELECT device, 1, position, 0 FROM outcome ORDER BY device, position;
        DROP INDEX envelope_of_device;
        DROP INDEX outcome_of_device;

        -- Its latest changes, in the order of the commits. See IndexLog.
        CREATE TABLE inbox_log (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            generation INTEGER NOT NULL,
            changes BLOB NOT NULL
        ) STRICT;

        -- Where something may be due by the end of a bucket. See DueTimes.
        ALTER TABLE due RENAME TO due_4;
        CREATE TABLE due (
            bucket INTEGER NOT NULL,
            chunk INTEGER NOT NULL,
            PRIMARY KEY (bucket, chunk)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO due SELECT DISTINCT bucket, position >> 16 FROM due_4 ORDER BY 1, 2;
        DROP TABLE due_4;

        -- Of an app that was deleted: its devices go in steps, and it with the last of them.
        ALTER TABLE app ADD COLUMN ended_at INTEGER;
        CREATE INDEX app_ended ON app (serial) WHERE ended_at IS NOT NULL;
        -- A device that was deleted, and of which envelopes are left.
        CREATE TABLE ended_device (serial INTEGER PRIMARY KEY) STRICT;

        -- The epoch of the home that writes here. See PositionSource.
        CREATE TABLE home (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            epoch INTEGER NOT NULL
        ) STRICT;

        -- How much waits in all inboxes together: one row, moved with each change.
        CREATE TABLE inbox_total (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            envelopes INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT;
        INSERT INTO inbox_total SELECT 1, count(*), coalesce(sum(size), 0) FROM envelope;
        """
}
