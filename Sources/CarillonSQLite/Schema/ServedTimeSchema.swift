/// Version 19 adds the time for which the server was in service, and its value in each row that is removed permanently after a
/// time. Existing rows have the value with which the counter begins.
enum ServedTimeSchema {
    static let changes = """
        -- In seconds, as it was written last.
        CREATE TABLE served (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            seconds INTEGER NOT NULL
        ) STRICT;
        INSERT INTO served VALUES (1, 0);

        -- The counter when the device was last seen, and when its status changed. The counter comes first in each index, as it is
        -- the counter that keeps rows after the server was stopped for long.
        ALTER TABLE device ADD COLUMN seen_served INTEGER NOT NULL DEFAULT 0;
        DROP INDEX device_anonymous;
        CREATE INDEX device_anonymous ON device (seen_served, seen_at) WHERE is_anonymous;
        DROP INDEX device_registered_seen;
        CREATE INDEX device_registered_seen ON device (seen_served, seen_at) WHERE NOT is_anonymous;
        ALTER TABLE device_profile ADD COLUMN status_served INTEGER NOT NULL DEFAULT 0;
        DROP INDEX device_profile_suspended;
        CREATE INDEX device_profile_suspended ON device_profile (status_served, status_at) WHERE reason IS NOT NULL;

        ALTER TABLE outcome ADD COLUMN final_served INTEGER NOT NULL DEFAULT 0;
        -- Chunks (see the table due) with outcomes whose time has come by the wall clock alone: the counter from which on they are
        -- looked at again.
        CREATE TABLE due_held (
            served INTEGER NOT NULL,
            chunk INTEGER NOT NULL,
            PRIMARY KEY (served, chunk)
        ) STRICT, WITHOUT ROWID;

        ALTER TABLE idempotency ADD COLUMN made_served INTEGER NOT NULL DEFAULT 0;
        DROP INDEX idempotency_end;
        CREATE INDEX idempotency_end ON idempotency (made_served, valid_until);

        -- The counter when expires_at was set.
        ALTER TABLE attachment ADD COLUMN kept_served INTEGER NOT NULL DEFAULT 0;

        -- Until when the earlier secret works by the counter.
        ALTER TABLE access_key ADD COLUMN earlier_served INTEGER NOT NULL DEFAULT 0;
        UPDATE access_key SET earlier_served = max(0, earlier_until / 1000 - unixepoch()) WHERE earlier_until NOT NULL;

        ALTER TABLE audience_update ADD COLUMN status_served INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE service_request ADD COLUMN finished_served INTEGER NOT NULL DEFAULT 0;

        -- What is over or parked (states 2 to 6) is kept for a while; the rest expires.
        ALTER TABLE push ADD COLUMN state_served INTEGER NOT NULL DEFAULT 0;
        DROP INDEX push_end;
        CREATE INDEX push_end ON push (ends_at) WHERE state < 2;
        CREATE INDEX push_kept ON push (state_served, ends_at) WHERE state >= 2;
        """
}
