/// What version 39 adds: hand-overs (`HandOver`), in place of the lists `unfollowed` and `unwatched`.
///
/// The triggers write the kinds 1 (`subscriptionsChanged`) and 2 (`subscriptionRemoved`). A number is never used again, so that a
/// hand-over that is applied twice does not remove another.
///
/// The lists are not moved. A process that opens the file has no item in memory, so only shapes without a subscription are left to be
/// removed.
enum HandOverSchema {
    static let changes = """
        CREATE TABLE hand_over (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            shard INTEGER NOT NULL CHECK (shard BETWEEN 0 AND 1023),
            kind INTEGER NOT NULL,
            content TEXT NOT NULL
        ) STRICT;

        DROP TRIGGER device_profile_followed;
        CREATE TRIGGER device_profile_followed AFTER UPDATE OF reason ON device_profile
            WHEN (old.reason IS NULL) != (new.reason IS NULL) BEGIN
            INSERT INTO hand_over (shard, kind, content)
            SELECT DISTINCT shard_of_item(watched.app, watched.item), 1, CAST(new.device AS TEXT)
            FROM subscription JOIN subscription_item AS watched ON watched.subscription = subscription.serial
            WHERE subscription.device = new.device AND subscription.status < 2;
        END;
        DROP TRIGGER subscription_item_deleted;
        CREATE TRIGGER subscription_item_deleted AFTER DELETE ON subscription_item BEGIN
            INSERT INTO hand_over (shard, kind, content)
            VALUES (shard_of_item(old.app, old.item), 2,
                old.app || ' ' || old.subscription || ' ' || coalesce(CAST(old.shape AS TEXT), '') || ' ' || old.item);
        END;

        DELETE FROM condition_shape WHERE serial IN (SELECT shape FROM unwatched)
            AND NOT EXISTS (SELECT 1 FROM subscription_item WHERE shape = condition_shape.serial);
        DROP TABLE unfollowed;
        DROP TABLE unwatched;
        """
}
