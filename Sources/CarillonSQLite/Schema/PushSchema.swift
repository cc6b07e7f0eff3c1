/// The tables of version 8: wakes, the outbox, and the push credentials of apps.
enum PushSchema {
    static let changes = """
        -- urgency and wake are numbers of Urgency and WakeMode. What waited before wakes nobody.
        ALTER TABLE envelope ADD COLUMN urgency INTEGER NOT NULL DEFAULT 2;
        ALTER TABLE envelope ADD COLUMN wake INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE channel ADD COLUMN wake TEXT NOT NULL DEFAULT 'background';

        -- seen_at is kept of registered devices, too: to the day. What was not kept until now begins now.
        UPDATE device SET seen_at = unixepoch() * 1000 WHERE NOT is_anonymous;
        CREATE INDEX device_registered_seen ON device (seen_at) WHERE NOT is_anonymous;
        DROP INDEX device_profile_suspended;
        CREATE INDEX device_profile_suspended ON device_profile (status_at) WHERE reason IS NOT NULL;

        -- Whether the device was told of its status.
        ALTER TABLE device_profile ADD COLUMN is_told INTEGER NOT NULL DEFAULT 1;
        -- How many alerts the device was sent since it last reset the number.
        ALTER TABLE device_profile ADD COLUMN badge INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX device_profile_untold ON device_profile (device) WHERE NOT is_told;

        -- That a device is to be woken for what waits: due_at is null when nothing is to be done, or a push is under way.
        -- unanswered and pushed_at are its pace (WakePace), which outlives the wake.
        CREATE TABLE wake (
            device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE,
            lane INTEGER NOT NULL,
            due_at INTEGER,
            set_at INTEGER NOT NULL,
            push INTEGER,
            unanswered INTEGER NOT NULL DEFAULT 0,
            pushed_at INTEGER
        ) STRICT;
        CREATE INDEX wake_due ON wake (lane, due_at) WHERE due_at NOT NULL;

        -- The outbox, and what became of pushes. first and last are the positions of the messages that it is for. due_at is
        -- when it is tried, or a lease ends; null of one that is over or parked. ends_at is when it expires, or is forgotten.
        CREATE TABLE push (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            id BLOB NOT NULL CHECK (length(id) = 16),
            device INTEGER NOT NULL,
            lane INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            state INTEGER NOT NULL,
            state_at INTEGER NOT NULL,
            due_at INTEGER,
            set_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            ends_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            fence INTEGER NOT NULL DEFAULT 0,
            is_elsewhere INTEGER NOT NULL DEFAULT 0,
            badge INTEGER,
            reason TEXT
        ) STRICT;
        CREATE INDEX push_due ON push (lane, due_at) WHERE due_at NOT NULL;
        CREATE INDEX push_of_device ON push (device, serial);
        CREATE INDEX push_end ON push (ends_at);
        CREATE INDEX push_parked ON push (lane, serial) WHERE state = 6;

        -- The keys that seal, wrapped by the key of a file or plain.
        ALTER TABLE token_key RENAME TO token_key_7;
        CREATE TABLE token_key (
            id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 255),
            bytes BLOB NOT NULL,
            is_wrapped INTEGER NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;
        INSERT INTO token_key SELECT id, bytes, 0, created_at FROM token_key_7;
        DROP TABLE token_key_7;

        -- What an app shows for a message that the vendor's service must not read, as JSON.
        CREATE TABLE app_alert (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            document TEXT NOT NULL
        ) STRICT;

        -- What an app shows a vendor's service, sealed under the key ring; summary is what anybody may see of it, as JSON.
        CREATE TABLE gateway_credential (
            app INTEGER NOT NULL REFERENCES app ON DELETE CASCADE,
            environment TEXT NOT NULL,
            sealed BLOB NOT NULL,
            summary TEXT NOT NULL,
            revision INTEGER NOT NULL,
            set_at INTEGER NOT NULL,
            PRIMARY KEY (app, environment)
        ) STRICT, WITHOUT ROWID;
        """
}
