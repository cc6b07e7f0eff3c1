/// The tables for requests of services, which version 8 of the client's store added.
enum ServiceBoxSchema {
    static let sql = """
        -- What came about requests, and is not done. directory has its files; is_known: it is no repetition; is_begun: its handler
        -- was called; is_unwanted: its consumer took it back; is_local: it came from an app of this machine. reply is what is posted, once it is decided.
        CREATE TABLE service_event (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            body BLOB NOT NULL,
            directory TEXT,
            is_known INTEGER NOT NULL DEFAULT 0,
            is_begun INTEGER NOT NULL DEFAULT 0,
            is_unwanted INTEGER NOT NULL DEFAULT 0,
            is_local INTEGER NOT NULL DEFAULT 0,
            reply BLOB
        ) STRICT;
        -- One row, once the device has keys: who it is to others (Ed25519).
        CREATE TABLE service_identity (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;
        -- Keys that others seal with (X25519), until a moment; they are kept for what was sealed before it.
        CREATE TABLE service_key (
            name TEXT PRIMARY KEY,
            key BLOB NOT NULL,
            valid_until INTEGER NOT NULL,
            kept_until INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        -- The identities of others, as they were first seen or accepted; offered is another one that was seen since. vouched_at: when the
        -- server last said that it may call.
        CREATE TABLE service_peer (
            device TEXT PRIMARY KEY,
            app TEXT NOT NULL,
            identity BLOB NOT NULL,
            offered BLOB,
            vouched_at INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        -- What this device asked, and has no result of. body is what is posted, until the server has it. call is JSON.
        -- local_until: the deadline of what went to an app of this machine.
        CREATE TABLE service_call (
            id TEXT PRIMARY KEY,
            call TEXT NOT NULL,
            body BLOB,
            kept_until INTEGER NOT NULL,
            local_until INTEGER
        ) STRICT, WITHOUT ROWID;
        -- Uploads that something of the above names, and that may not be confirmed.
        CREATE TABLE service_upload (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
        -- Requests that came, until nobody can send them once more.
        CREATE TABLE service_seen (id TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX service_seen_until ON service_seen (until);

        """

    /// The changes of version 12: identities belong to a user, which is empty if the device has none.
    static let identitiesOfUsers = """
        -- Who the device is to others (Ed25519), for each of its users. used_at: when the user's last key was made.
        CREATE TABLE service_identity_of_user (
            user TEXT PRIMARY KEY,
            key BLOB NOT NULL,
            used_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        INSERT INTO service_identity_of_user
            SELECT coalesce((SELECT user FROM owner), ''), key, 0 FROM service_identity LIMIT 1;
        DROP TABLE service_identity;
        ALTER TABLE service_identity_of_user RENAME TO service_identity;
        -- The identities of others and of their users, as they were first seen or accepted. offered is another one that was seen since, at
        -- offered_at. vouched_at: when the server last said that the device may call.
        CREATE TABLE service_peer_of_user (
            device TEXT NOT NULL,
            user TEXT NOT NULL,
            app TEXT NOT NULL,
            identity BLOB NOT NULL,
            offered BLOB,
            offered_at INTEGER NOT NULL DEFAULT 0,
            pinned_at INTEGER NOT NULL DEFAULT 0,
            vouched_at INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (device, user)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO service_peer_of_user (device, user, app, identity, offered, vouched_at)
            SELECT device, coalesce((SELECT user FROM owner), ''), app, identity, offered, vouched_at FROM service_peer;
        DROP TABLE service_peer;
        ALTER TABLE service_peer_of_user RENAME TO service_peer;

        """

    /// Removes the data of the former user. The identities of this device and of others stay, each for its user.
    static let erase = eraseForFirstUser + ServiceKeepingSchema.eraseResults

    /// Removes the same data at the first sign-in, except the results that the app did not confirm.
    static let eraseForFirstUser = """
        DELETE FROM service_event; DELETE FROM service_key; DELETE FROM service_call; DELETE FROM service_seen;
        DELETE FROM service_upload; UPDATE service_peer SET vouched_at = 0;
        \(ServiceKeepingSchema.eraseDrafts)

        """

    /// Removes the identities as well.
    static let eraseIdentities = "DELETE FROM service_identity; DELETE FROM service_peer;"
}
