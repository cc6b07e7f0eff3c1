import GRDB

/// The tables of the client's store, and their version.
enum ClientSchema {
    /// The value of `PRAGMA application_id` in the header of the file: "CrCl".
    static let applicationID = 0x4372_436C
    static let version = 15

    /// Migrates the tables of an earlier version to this version. Throws, without a change, if the file is damaged, foreign or
    /// newer, or has no tables, because a store always has tables.
    static func prepare(_ database: Database, _ paths: StoragePaths) throws {
        let found = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
        let application = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        guard application == applicationID else {
            throw PushError(
                .storageDamaged, "The storage is empty, or an SQLite file of another program; it was left as it is.")
        }
        guard found <= version else {
            throw PushError(
                .storageTooNew,
                "The storage has version \(found), and this library knows versions up to \(version); it was left as it is."
            )
        }
        let verdict = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? ""
        guard verdict == "ok" else {
            throw PushError(.storageDamaged, "The storage is damaged (\(verdict)); it was left as it is.")
        }
        if found < 2 { try addKeys(database) }
        if found < 3 {
            try database.inTransaction(.immediate) {
                try database.execute(
                    sql: """
                        ALTER TABLE owner ADD COLUMN server_id TEXT;
                        ALTER TABLE owner ADD COLUMN registration TEXT;
                        \(messages)
                        PRAGMA user_version = 3;
                        """)
                return .commit
            }
        }
        if found < 4 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: device + "PRAGMA user_version = 4;")
                return .commit
            }
        }
        if found < 5 {
            try database.inTransaction(.immediate) {
                try database.execute(
                    sql: """
                        ALTER TABLE channel ADD COLUMN wake TEXT;
                        ALTER TABLE owner ADD COLUMN renewal TEXT;
                        ALTER TABLE owner ADD COLUMN user TEXT;
                        \(user)
                        PRAGMA user_version = 5;
                        """)
                return .commit
            }
        }
        if found < 6 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: UpdateInboxSchema.sql + "PRAGMA user_version = 6;")
                return .commit
            }
        }
        if found < 7 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: UpdateInboxSchema.coalesced + "PRAGMA user_version = 7;")
                return .commit
            }
        }
        if found < 8 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: ServiceBoxSchema.sql + "PRAGMA user_version = 8;")
                return .commit
            }
        }
        if found < 9 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: UpdateInboxSchema.serverTime + "PRAGMA user_version = 9;")
                return .commit
            }
        }
        if found < 10 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: UpdateInboxSchema.owners + HandlerStarts.schema + "PRAGMA user_version = 10;")
                return .commit
            }
        }
        if found < 11 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: ServiceKeepingSchema.sql + "PRAGMA user_version = 11;")
                return .commit
            }
        }
        if found < 12 {
            try database.inTransaction(.immediate) {
                try convertPaths(database, paths)
                try database.execute(sql: ServiceBoxSchema.identitiesOfUsers + "PRAGMA user_version = 12;")
                return .commit
            }
        }
        if found < 13 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: HandlerStarts.keptSchema + "PRAGMA user_version = 13;")
                return .commit
            }
        }
        if found < 14 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: lateAnswers + "PRAGMA user_version = 14;")
                return .commit
            }
        }
        if found < 15 {
            try database.inTransaction(.immediate) {
                try database.execute(sql: HandlerStarts.firingSchema + "PRAGMA user_version = 15;")
                return .commit
            }
        }
    }

    /// The changes of version 14.
    private static let lateAnswers = """
        -- Of a device that was signed out before the server accepted its credential.
        ALTER TABLE farewell ADD COLUMN registration TEXT;
        -- Servers that named themselves in Carillon-Server.
        CREATE TABLE named_server (
            base TEXT PRIMARY KEY, id TEXT NOT NULL, seen_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

        """

    /// The changes of version 5.
    private static let user = """
        ALTER TABLE farewell ADD COLUMN next_credential TEXT;
        -- One row while the server is to be told of the user: null of nobody.
        CREATE TABLE push_user (id INTEGER PRIMARY KEY CHECK (id = 1), token TEXT) STRICT;

        """

    /// The changes of version 4.
    private static let device = """
        -- One row, once the app said a push token: what this install is to the vendor's push service.
        CREATE TABLE push_device (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            token TEXT,
            taken_token TEXT,
            status TEXT NOT NULL,
            reason TEXT,
            status_at INTEGER,
            details TEXT NOT NULL
        ) STRICT;

        """

    /// The changes of version 3.
    private static let messages = """
        -- Messages that were acknowledged, and that the app is not done with.
        CREATE TABLE message (
            position INTEGER PRIMARY KEY,
            channel TEXT NOT NULL,
            id TEXT NOT NULL,
            body BLOB NOT NULL,
            encoding TEXT,
            encryption TEXT,
            crypto_key TEXT
        ) STRICT;
        CREATE INDEX message_of_channel ON message (channel, position);
        -- Failures that the app told of, and the server was not told.
        CREATE TABLE report (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL,
            code INTEGER NOT NULL
        ) STRICT;
        -- Devices that were signed out, and that the server may not know to be gone.
        CREATE TABLE farewell (
            device TEXT PRIMARY KEY,
            credential TEXT NOT NULL,
            server TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    private static func addKeys(_ database: Database) throws {
        try database.inTransaction(.immediate) {
            try database.execute(
                sql: """
                    ALTER TABLE channel ADD COLUMN private_key BLOB;
                    ALTER TABLE channel ADD COLUMN auth_secret BLOB;
                    ALTER TABLE channel ADD COLUMN token_due INTEGER NOT NULL DEFAULT 0;
                    -- Nothing is known of what the backend has.
                    UPDATE channel SET token_due = 1 WHERE state = 'open';
                    PRAGMA user_version = 2;
                    """)
            return .commit
        }
    }

    /// Makes the tables in a new file.
    static func create(_ database: Database) throws {
        try database.execute(sql: "PRAGMA journal_mode = WAL")
        try database.inTransaction(.immediate) {
            try database.execute(
                sql: """
                    -- One row: whose state this is, and who the device is to the server (null until it is registered).
                    CREATE TABLE owner (
                        id INTEGER PRIMARY KEY CHECK (id = 1),
                        server TEXT NOT NULL,
                        app TEXT NOT NULL,
                        device TEXT,
                        credential TEXT,
                        socket TEXT,
                        was_lost INTEGER NOT NULL DEFAULT 0,
                        server_id TEXT,
                        registration TEXT,
                        renewal TEXT,
                        user TEXT
                    ) STRICT;
                    CREATE TABLE channel (
                        identifier TEXT PRIMARY KEY,
                        state TEXT NOT NULL,
                        channel_id TEXT,
                        endpoint TEXT,
                        error_code INTEGER,
                        private_key BLOB,
                        auth_secret BLOB,
                        token_due INTEGER NOT NULL DEFAULT 0,
                        wake TEXT
                    ) STRICT, WITHOUT ROWID;
                    -- Channels that may exist on the server and that nobody wants.
                    CREATE TABLE withdrawal (channel_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
                    -- What the server was told of messages, in the order in which it was.
                    CREATE TABLE handled (
                        position INTEGER PRIMARY KEY AUTOINCREMENT,
                        id TEXT NOT NULL UNIQUE,
                        code INTEGER NOT NULL
                    ) STRICT;
                    \(messages)
                    \(device)
                    \(user)
                    \(UpdateInboxSchema.sql)
                    \(UpdateInboxSchema.coalesced)
                    \(ServiceBoxSchema.sql)
                    \(UpdateInboxSchema.serverTime)
                    \(UpdateInboxSchema.owners)
                    \(HandlerStarts.schema)
                    \(ServiceKeepingSchema.sql)
                    \(ServiceBoxSchema.identitiesOfUsers)
                    \(HandlerStarts.keptSchema)
                    \(lateAnswers)
                    \(HandlerStarts.firingSchema)
                    PRAGMA application_id = \(applicationID);
                    PRAGMA user_version = \(version);
                    """)
            return .commit
        }
    }
}
