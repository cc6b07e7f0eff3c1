/// How much waits in all inboxes together: one row, moved with each change.
enum InboxTotalSchema {
    static let tables = """
        CREATE TABLE inbox_total (
            serial INTEGER PRIMARY KEY CHECK (serial = 1),
            envelopes INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT;
        INSERT INTO inbox_total SELECT 1, count(*), coalesce(sum(size), 0) FROM envelope;
        """
}
