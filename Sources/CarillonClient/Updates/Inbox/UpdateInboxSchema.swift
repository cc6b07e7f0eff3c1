/// The tables of updates in the client's store, which version 6 added.
enum UpdateInboxSchema {
    static let sql = """
        -- Updates that were received and are not done with.
        CREATE TABLE update_inbox (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL,
            entry INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            body BLOB NOT NULL,
            state TEXT NOT NULL,
            -- Of one that is deferred: what it waits for.
            condition TEXT,
            -- Whether the user was told of its conflict.
            was_told INTEGER NOT NULL DEFAULT 0,
            UNIQUE (id, entry)
        ) STRICT;
        -- What was done, so that it is not done again; the oldest are forgotten.
        CREATE TABLE update_done (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL,
            entry INTEGER NOT NULL,
            result TEXT NOT NULL,
            UNIQUE (id, entry)
        ) STRICT;
        -- What the server is to be told.
        CREATE TABLE update_result (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL,
            entry INTEGER NOT NULL,
            result TEXT NOT NULL,
            UNIQUE (id, entry)
        ) STRICT;
        -- One row: whose the inbox is, and how far it was received.
        CREATE TABLE update_place (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            device TEXT NOT NULL,
            user TEXT NOT NULL,
            profile TEXT NOT NULL,
            position TEXT,
            parameters TEXT
        ) STRICT;
        -- One row while a maintenance is announced or under way.
        CREATE TABLE maintenance (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            begins_at INTEGER NOT NULL,
            ends_at INTEGER,
            -- What comes back with its end: null where the user chose another.
            mode TEXT,
            has_begun INTEGER NOT NULL
        ) STRICT;

        """

    /// The table that version 9 added.
    static let serverTime = """
        -- One row once the server announced a maintenance: what its clock said then, and what this device's said. boot is the start of the
        -- device that uptime counts from.
        CREATE TABLE IF NOT EXISTS server_time (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            server INTEGER NOT NULL,
            wall INTEGER NOT NULL,
            uptime INTEGER NOT NULL,
            boot TEXT NOT NULL
        ) STRICT;

        """

    /// The changes of version 7.
    static let coalesced = """
        -- Of content for which a later one stands: the number of that.
        ALTER TABLE update_inbox ADD COLUMN absorbed_by INTEGER;
        CREATE INDEX update_inbox_absorbed ON update_inbox (absorbed_by) WHERE absorbed_by NOT NULL;

        """

    /// The changes of version 10: results and finished updates belong to an owner.
    static let owners = """
        -- Device, user and profile of results and finished updates, at most eight. used grows with each change of the owner: the row with the
        -- smallest number is removed first.
        CREATE TABLE update_owner (
            number INTEGER PRIMARY KEY,
            device TEXT NOT NULL,
            user TEXT NOT NULL,
            profile TEXT NOT NULL,
            used INTEGER NOT NULL,
            UNIQUE (device, user, profile)
        ) STRICT;
        INSERT INTO update_owner SELECT 1, device, user, profile, 1 FROM update_place;
        ALTER TABLE update_done RENAME TO update_done_9;
        -- Finished updates, which are not processed again; number counts for each owner.
        CREATE TABLE update_done (
            owner INTEGER NOT NULL,
            number INTEGER NOT NULL,
            id TEXT NOT NULL,
            entry INTEGER NOT NULL,
            result TEXT NOT NULL,
            PRIMARY KEY (owner, number),
            UNIQUE (owner, id, entry)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO update_done
            SELECT update_owner.number, done.number, id, entry, result FROM update_done_9 AS done, update_owner;
        DROP TABLE update_done_9;
        ALTER TABLE update_result RENAME TO update_result_9;
        -- Results that the server has not taken.
        CREATE TABLE update_result (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            owner INTEGER NOT NULL,
            id TEXT NOT NULL,
            entry INTEGER NOT NULL,
            result TEXT NOT NULL,
            UNIQUE (owner, id, entry)
        ) STRICT;
        CREATE INDEX update_result_of_owner ON update_result (owner);
        INSERT INTO update_result
            SELECT said.number, update_owner.number, id, entry, result FROM update_result_9 AS said, update_owner;
        DROP TABLE update_result_9;

        """

    /// Removes the results and finished updates of a device that was deleted.
    static let eraseOwners = "DELETE FROM update_result; DELETE FROM update_done; DELETE FROM update_owner;"
}
