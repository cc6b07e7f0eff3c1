/// The starts of the app's code for an entry that the storage keeps: an update, the present maintenance, a message of a channel, a
/// request of a service, a result of one, or a firing of a subscription.
///
/// A start is stored before the code runs, and taken back when the code ends in any way: it returns, throws, or is cancelled with its task or with
/// the client. The starts that stay are those that ended with the process.
enum HandlerStarts {
    /// The number of starts that ended with the process after which an entry is reported as failed. The server parks an update after as many
    /// failures.
    static let most = 10

    /// Whether an entry ended the process too often to be started again.
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

    /// Forgets the starts for firings of a device or user.
    static let eraseFirings = "DELETE FROM firing_start;"
}
