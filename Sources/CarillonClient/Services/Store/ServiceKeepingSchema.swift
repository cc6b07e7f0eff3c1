/// The tables of version 11 of the client's store: results that the app has not confirmed, and drafts of replies.
enum ServiceKeepingSchema {
    static let sql = """
        -- Results that the app has not confirmed, in the order in which they came. files is a JSON array of paths below the directory for
        -- received files; payload is JSON; bytes is the size of the payload and the files.
        CREATE TABLE IF NOT EXISTS service_result (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            app TEXT NOT NULL,
            device TEXT NOT NULL,
            service TEXT NOT NULL,
            version TEXT NOT NULL,
            method TEXT NOT NULL,
            files TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            received_at INTEGER NOT NULL,
            payload BLOB NOT NULL
        ) STRICT;
        -- Replies whose files are not with the server; number is that of the request's event. payload is JSON; files is a JSON array of objects:
        -- path (as StoragePaths keeps it), name, and upload once it is begun.
        CREATE TABLE IF NOT EXISTS service_draft (
            number INTEGER PRIMARY KEY,
            payload BLOB NOT NULL,
            files TEXT NOT NULL
        ) STRICT;

        """

    /// Deletes the results of a user.
    static let eraseResults = "DELETE FROM service_result;"

    /// Deletes the replies of a user.
    static let eraseDrafts = "DELETE FROM service_draft;"
}
