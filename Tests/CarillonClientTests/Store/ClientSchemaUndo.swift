import GRDB

/// Makes the tables of an earlier version, as a store of that version has them.
enum ClientSchemaUndo {
    static func version15(_ database: Database) throws {
        try database.execute(sql: "DROP TABLE firing_start; PRAGMA user_version = 14")
    }

    /// Undoes version 15 as well.
    static func version14(_ database: Database) throws {
        try version15(database)
        try database.execute(
            sql: "ALTER TABLE farewell DROP COLUMN registration; DROP TABLE named_server; PRAGMA user_version = 13")
    }

    /// Undoes versions 14 and 15 as well.
    static func version13(_ database: Database) throws {
        try version14(database)
        for table in ["service_result", "maintenance"] {
            try database.execute(sql: "ALTER TABLE \(table) DROP COLUMN starts")
        }
        try database.execute(sql: "PRAGMA user_version = 12")
    }

    /// Undoes versions 13 to 15 as well.
    static func version12(_ database: Database) throws {
        try version13(database)
        try database.execute(
            sql: """
                DROP TABLE service_identity; DROP TABLE service_peer;
                CREATE TABLE service_identity (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL) STRICT;
                CREATE TABLE service_peer (
                    device TEXT PRIMARY KEY, app TEXT NOT NULL, identity BLOB NOT NULL, offered BLOB,
                    vouched_at INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
                PRAGMA user_version = 11;
                """)
    }

    static func version11(_ database: Database) throws {
        try database.execute(sql: "DROP TABLE service_result; DROP TABLE service_draft; PRAGMA user_version = 10")
    }

    static func version10(_ database: Database) throws {
        try database.execute(sql: "DROP TABLE update_owner")
        for table in ["update_done", "update_result"] {
            try database.execute(
                sql: """
                    DROP TABLE \(table);
                    CREATE TABLE \(table) (
                        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, entry INTEGER NOT NULL,
                        result TEXT NOT NULL, UNIQUE (id, entry)) STRICT;
                    """)
        }
        for table in ["message", "update_inbox", "service_event"] {
            try database.execute(sql: "ALTER TABLE \(table) DROP COLUMN starts")
        }
        try database.execute(sql: "PRAGMA user_version = 9")
    }
}
