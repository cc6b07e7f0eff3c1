/// Version 15 adds to subscriptions a list of all suspensions and resumptions that must be reported.
enum SuspensionSchema {
    static let changes = """
        -- Devices that were suspended or resumed, and of which who watches was not told.
        CREATE TABLE unfollowed (device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE) STRICT;
        CREATE TRIGGER device_profile_followed AFTER UPDATE OF reason ON device_profile
            WHEN (old.reason IS NULL) != (new.reason IS NULL) BEGIN
            INSERT INTO unfollowed (device)
            SELECT new.device WHERE EXISTS (SELECT 1 FROM subscription WHERE device = new.device AND status < 2)
                AND NOT EXISTS (SELECT 1 FROM unfollowed WHERE device = new.device);
        END;

        -- What an item was updated with meanwhile was not looked at for the device: it is armed as one that is new.
        CREATE TRIGGER device_profile_resumed AFTER UPDATE OF reason ON device_profile
            WHEN old.reason NOT NULL AND new.reason IS NULL BEGIN
            UPDATE subscription_item SET version = coalesce((SELECT item.version FROM item
                WHERE item.app = subscription_item.app AND item.name = subscription_item.item), version)
            WHERE last_firing = 0 AND subscription IN (SELECT serial FROM subscription WHERE device = new.device AND status < 2);
        END;
        """
}
