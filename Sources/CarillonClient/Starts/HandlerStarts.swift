/// The starts of the app's code for an entry of the storage. An entry is an update, the present maintenance, a message of a
/// channel, a request of a service, a result of a service, or a firing of a subscription.
///
/// A start is stored before the code runs, and removed when the code ends in any way: it returns, throws, or is cancelled with
/// its task or with the client. The starts that remain are those that ended with the process.
enum HandlerStarts {
    /// The number of starts that ended with the process, after which an entry is reported as failed. The server parks an update
    /// after the same number of failures.
    static let most = 10

    /// Whether the process ended too often while the app handled an entry. Such an entry is not started again.
    static func isCrashing(_ starts: Int) -> Bool { starts >= most }

    /// The columns that version 10 of the store added.
    static let schema = """
        -- Starts of the app's code for an entry that ended with the process.
        ALTER TABLE message ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE update_inbox ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE service_event ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;

        """

    /// The columns that version 13 of the store added.
    static let keptSchema = """
        ALTER TABLE service_result ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE maintenance ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;

        """

    /// The table that version 15 of the store added.
    static let firingSchema = """
        -- Starts of the app's code for a firing that ended with the process: of the newest firings that were started.
        CREATE TABLE firing_start (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            starts INTEGER NOT NULL
        ) STRICT;

        """

    /// Removes the starts for all firings, when the device or its user changed.
    static let eraseFirings = "DELETE FROM firing_start;"
}
