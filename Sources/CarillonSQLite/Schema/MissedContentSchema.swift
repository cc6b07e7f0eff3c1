/// Version 16 adds to updates: coalesced content, content that a device missed, and the audit.
enum MissedContentSchema {
    static let changes = """
        -- is_resync: it is no part of the log, but that by which devices are told to fetch everything, each time by an entry.
        ALTER TABLE audience_update ADD COLUMN is_resync INTEGER NOT NULL DEFAULT 0;
        CREATE UNIQUE INDEX audience_update_resync ON audience_update (app) WHERE is_resync;
        CREATE INDEX audience_update_expired_content ON audience_update (app, serial) WHERE status = 3 AND kind = 'content';

        CREATE INDEX audience_update_content ON audience_update (content);

        -- The last content of an app that expired and of which nothing is known any more.
        CREATE TABLE forgotten_content (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            up_to INTEGER NOT NULL
        ) STRICT;

        -- Of content that expired up to seen_to nothing was missed. received_to and updates_to are the latest places that it polled with.
        ALTER TABLE binding ADD COLUMN seen_to INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE binding ADD COLUMN needs_resync INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE binding ADD COLUMN received_to INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE binding ADD COLUMN updates_to INTEGER NOT NULL DEFAULT 0;
        UPDATE binding SET seen_to = held_to;

        -- The update of later content that stands for it.
        ALTER TABLE completion ADD COLUMN absorbed_by INTEGER;
        CREATE INDEX completion_absorbed ON completion (binding, absorbed_by) WHERE absorbed_by NOT NULL;

        -- What was done with updates, by which key.
        CREATE TABLE update_audit (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL REFERENCES app ON DELETE CASCADE,
            at INTEGER NOT NULL,
            key INTEGER NOT NULL,
            action TEXT NOT NULL,
            of_update BLOB NOT NULL,
            count INTEGER
        ) STRICT;
        CREATE INDEX update_audit_of_app ON update_audit (app, number);
        CREATE INDEX update_audit_at ON update_audit (at);
        """
}
