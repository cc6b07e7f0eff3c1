/// Adds the identity of the server, and the secrets that identify a device that repeats its registration.
enum ServerSchema {
    static let tables = """
        -- One row, made once.
        CREATE TABLE server (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            id BLOB NOT NULL CHECK (length(id) = 16)
        ) STRICT;

        CREATE TABLE registration (
            device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE,
            app INTEGER NOT NULL,
            secret_hash BLOB NOT NULL,
            UNIQUE (app, secret_hash)
        ) STRICT;
        """
}
