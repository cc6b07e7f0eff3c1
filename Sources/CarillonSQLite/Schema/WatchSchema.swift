/// The tables of version 2: watches and their outgoing calls. ``CallSchema`` replaces them.
enum WatchSchema {
    static let tables = """
        -- A host and port that is called. It is what a lease is taken on, so that one call at a time goes to it.
        -- due_at is not later than the first of its calls; fence counts the leases.
        CREATE TABLE peer (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL UNIQUE,
            due_at INTEGER NOT NULL,
            leased_until INTEGER NOT NULL DEFAULT 0,
            fence INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX peer_due ON peer (due_at);

        -- One for each channel that a back end watches. secret and token are sealed. told is the failure that the
        -- channel was last told of; last_code, with last_at, what the last ping met.
        CREATE TABLE watch (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            channel INTEGER NOT NULL UNIQUE REFERENCES channel ON DELETE CASCADE,
            revision INTEGER NOT NULL DEFAULT 1,
            ping_address TEXT,
            ping_interval INTEGER,
            ping_peer INTEGER REFERENCES peer,
            due_at INTEGER,
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
            CHECK ((ping_address IS NULL) = (due_at IS NULL)),
            CHECK ((ping_address IS NULL) = (ping_peer IS NULL)),
            CHECK ((ping_address IS NULL) = (ping_interval IS NULL))
        ) STRICT;
        CREATE INDEX watch_due ON watch (ping_peer, due_at);

        -- A channel that was watched has ended, and its back end was not told yet.
        CREATE TABLE disconnect_callback (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            channel INTEGER NOT NULL,
            address TEXT NOT NULL,
            peer INTEGER NOT NULL REFERENCES peer,
            webhook_id TEXT NOT NULL UNIQUE,
            secret BLOB NOT NULL,
            token BLOB NOT NULL,
            reason TEXT NOT NULL,
            ended_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX disconnect_callback_due ON disconnect_callback (peer, due_at);
        """
}
