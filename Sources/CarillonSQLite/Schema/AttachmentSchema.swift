/// Version 17 adds attachments.
enum AttachmentSchema {
    static let changes = """
        -- device: who uploaded it; 0 is a sender. allowance: whose bytes they are. synced: how much is on disk for good.
        CREATE TABLE attachment (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            id BLOB NOT NULL UNIQUE CHECK (length(id) = 18),
            app INTEGER NOT NULL,
            device INTEGER NOT NULL,
            allowance TEXT NOT NULL,
            length INTEGER NOT NULL CHECK (length >= 0),
            charged INTEGER NOT NULL,
            synced INTEGER NOT NULL DEFAULT 0 CHECK (synced BETWEEN 0 AND length),
            is_complete INTEGER NOT NULL DEFAULT 0,
            digest BLOB,
            lifetime INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            idempotency BLOB,
            fingerprint BLOB
        ) STRICT;
        CREATE INDEX attachment_due ON attachment (expires_at);
        CREATE INDEX attachment_of_party ON attachment (app, device, is_complete);
        CREATE UNIQUE INDEX attachment_idempotency ON attachment (app, device, idempotency) WHERE idempotency IS NOT NULL;

        -- Who may fetch it and has not; 0: whoever has a sender key of the app.
        CREATE TABLE attachment_reader (
            attachment INTEGER NOT NULL REFERENCES attachment ON DELETE CASCADE,
            device INTEGER NOT NULL,
            PRIMARY KEY (attachment, device)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX attachment_of_reader ON attachment_reader (device) WHERE device > 0;

        -- What is used of allowances; '' is the whole app's.
        CREATE TABLE attachment_total (
            app INTEGER NOT NULL,
            allowance TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (app, allowance)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER attachment_added AFTER INSERT ON attachment BEGIN
            INSERT INTO attachment_total VALUES (NEW.app, '', NEW.charged), (NEW.app, NEW.allowance, NEW.charged)
            ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
        END;
        CREATE TRIGGER attachment_removed AFTER DELETE ON attachment BEGIN
            UPDATE attachment_total SET bytes = bytes - OLD.charged
            WHERE app = OLD.app AND allowance IN ('', OLD.allowance);
            DELETE FROM attachment_total WHERE app = OLD.app AND allowance IN ('', OLD.allowance) AND bytes <= 0;
        END;

        -- Those who are gone, and left attachments: theirs, and what was for them. A device of 0 is the whole app.
        CREATE TABLE attachment_party_gone (
            app INTEGER NOT NULL,
            device INTEGER NOT NULL,
            PRIMARY KEY (app, device)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER attachment_device_gone AFTER DELETE ON device
        WHEN EXISTS (SELECT 1 FROM attachment WHERE app = OLD.app AND device = OLD.serial)
            OR EXISTS (SELECT 1 FROM attachment_reader WHERE device = OLD.serial AND device > 0)
        BEGIN INSERT OR IGNORE INTO attachment_party_gone VALUES (OLD.app, OLD.serial); END;
        CREATE TRIGGER attachment_app_gone AFTER UPDATE OF ended_at ON app
        WHEN NEW.ended_at IS NOT NULL AND EXISTS (SELECT 1 FROM attachment WHERE app = OLD.serial)
        BEGIN INSERT OR IGNORE INTO attachment_party_gone VALUES (OLD.serial, 0); END;
        """
}
