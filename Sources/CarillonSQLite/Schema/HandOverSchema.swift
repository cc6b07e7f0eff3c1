/// Version 39 adds a table of hand-overs (`HandOver`), which replaces the lists `unfollowed` and `unwatched`.
///
/// A number is never used again, so that a hand-over that is applied twice does not remove another.
///
/// The rows of the lists are not moved. A process that opens the file has no item in memory, so the only remaining task is to
/// remove shapes without a subscription.
enum HandOverSchema {
    static let changes = """
        CREATE TABLE hand_over (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            shard INTEGER NOT NULL CHECK (shard BETWEEN 0 AND 1023),
            kind INTEGER NOT NULL,
            content TEXT NOT NULL
        ) STRICT;
        CREATE INDEX hand_over_of_shard ON hand_over (shard, number);

        DELETE FROM condition_shape WHERE serial IN (SELECT shape FROM unwatched)
            AND NOT EXISTS (SELECT 1 FROM subscription_item WHERE shape = condition_shape.serial);
        DROP TABLE unfollowed;
        DROP TABLE unwatched;
        """
}
