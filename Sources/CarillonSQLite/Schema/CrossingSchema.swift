/// Adds to a subscription on an item whether its condition held when the subscription was armed. Such a condition does not fire.
enum CrossingSchema {
    static let changes = """
        -- 1 when the condition held after the update that version counts, 0 when it did not, null when that is not known.
        ALTER TABLE subscription_item ADD COLUMN held INTEGER;

        -- last_firing is negative when the item was deleted since and nothing fired: firings up to this number do not count.
        DROP TRIGGER device_profile_resumed;
        CREATE TRIGGER device_profile_resumed AFTER UPDATE OF reason ON device_profile
            WHEN old.reason NOT NULL AND new.reason IS NULL BEGIN
            UPDATE subscription_item SET held = NULL, version = coalesce((SELECT item.version FROM item
                WHERE item.app = subscription_item.app AND item.name = subscription_item.item), 0)
            WHERE last_firing <= 0 AND subscription IN (SELECT serial FROM subscription WHERE device = new.device AND status < 2);
            -- Before the first update no condition holds.
            UPDATE subscription_item SET held = 0
            WHERE version = 0 AND subscription IN (SELECT serial FROM subscription WHERE device = new.device AND status < 2);
        END;
        """
}
