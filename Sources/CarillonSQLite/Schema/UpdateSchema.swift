/// Version 15 adds audience updates.
enum UpdateSchema {
    static let changes = """
        -- One row, made once: which past of the server this is. A store that is made of a backup has none, and gets another.
        CREATE TABLE history (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            number INTEGER NOT NULL
        ) STRICT;

        -- What an app declares of its devices' parameters, as JSON.
        CREATE TABLE parameter_rules (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            document TEXT NOT NULL,
            version INTEGER NOT NULL DEFAULT 1,
            set_at INTEGER NOT NULL
        ) STRICT;

        -- The log: its order is that of the serials. status is that of Update.Status; is_left_over: completions of it are not final
        -- although it ended. With wakes sleeping devices are woken for it: those of bindings up to woken_to were; null, when all were.
        CREATE TABLE audience_update (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
            app INTEGER NOT NULL REFERENCES app ON DELETE CASCADE,
            kind TEXT NOT NULL,
            audience TEXT,
            is_indexed INTEGER NOT NULL,
            is_standing INTEGER NOT NULL,
            order_key TEXT,
            supersedes BLOB,
            published_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            status INTEGER NOT NULL DEFAULT 0,
            status_at INTEGER NOT NULL,
            is_left_over INTEGER NOT NULL DEFAULT 0,
            wakes INTEGER NOT NULL,
            woken_to INTEGER,
            idempotency_key BLOB,
            fingerprint BLOB,
            content INTEGER NOT NULL REFERENCES shared_content
        ) STRICT;
        CREATE INDEX audience_update_live ON audience_update (app, serial) WHERE status = 0;
        CREATE INDEX audience_update_of_app ON audience_update (app, serial);
        CREATE INDEX audience_update_ended ON audience_update (status_at) WHERE status != 0;
        CREATE INDEX audience_update_left_over ON audience_update (serial) WHERE is_left_over;
        CREATE INDEX audience_update_end ON audience_update (expires_at) WHERE status = 0;
        CREATE INDEX audience_update_wakes ON audience_update (app, serial) WHERE woken_to NOT NULL;
        CREATE UNIQUE INDEX audience_update_key ON audience_update (app, idempotency_key) WHERE idempotency_key NOT NULL;
        CREATE TRIGGER audience_update_deleted AFTER DELETE ON audience_update
            BEGIN UPDATE shared_content SET is_released = TRUE WHERE serial = old.content; END;

        -- A device with its user and its profile. Every live update up to held_to that matches the parameters has a completion. held_by is
        -- the version of the rules for that. One whose user signed out has ended; is_left_over: something of it is in the inbox still.
        CREATE TABLE binding (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            device INTEGER NOT NULL REFERENCES device ON DELETE CASCADE,
            app INTEGER NOT NULL,
            user TEXT,
            profile TEXT NOT NULL,
            revision INTEGER NOT NULL DEFAULT 1,
            parameters_revision TEXT,
            parameters BLOB NOT NULL,
            locations BLOB,
            located_at INTEGER,
            kinds TEXT NOT NULL,
            held_to INTEGER NOT NULL DEFAULT 0,
            held_by INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            ended_at INTEGER,
            is_left_over INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE UNIQUE INDEX binding_of_device ON binding (device, coalesce(user, ''), profile);
        CREATE INDEX binding_of_app ON binding (app, serial);
        CREATE INDEX binding_located ON binding (located_at) WHERE located_at NOT NULL;
        CREATE INDEX binding_left_over ON binding (serial) WHERE is_left_over;
        -- What the device said of the user before is not said of this one; where he was is nobody's business any more.
        CREATE TRIGGER binding_user_changed AFTER UPDATE OF user ON device_profile WHEN old.user IS NOT new.user BEGIN
            UPDATE binding SET ended_at = coalesce(ended_at, new.status_at), locations = NULL, located_at = NULL, held_to = 0, is_left_over = 1,
                revision = revision + 1, parameters_revision = NULL
            WHERE device = new.device AND ended_at IS NULL AND user IS NOT new.user;
        END;

        -- due_at is when it is given again; of what stands behind another of its order key attempt is 0 and due_at null.
        CREATE TABLE completion (
            binding INTEGER NOT NULL REFERENCES binding ON DELETE CASCADE,
            in_update INTEGER NOT NULL,
            entry INTEGER NOT NULL,
            state INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            first_failed_at INTEGER,
            due_at INTEGER,
            changed_at INTEGER NOT NULL,
            has_left INTEGER NOT NULL DEFAULT 0,
            order_key TEXT,
            reason TEXT,
            PRIMARY KEY (binding, in_update, entry)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX completion_of_update ON completion (in_update, state, binding, entry);
        CREATE INDEX completion_unfinished ON completion (binding, in_update) WHERE state < 10;
        CREATE INDEX completion_due ON completion (due_at) WHERE due_at NOT NULL;
        CREATE INDEX completion_order ON completion (binding, order_key, in_update) WHERE order_key NOT NULL AND state < 4;
        """
}
