/// Version 12 adds the last reported firing of each item of a subscription. A suspended device is not notified of firings from
/// before its suspension.
enum FiringSchema {
    static let changes = """
        -- The number of the firing of the item that was told last, since the subscription was armed.
        ALTER TABLE subscription_item ADD COLUMN last_firing INTEGER NOT NULL DEFAULT 0;
        UPDATE subscription_item SET last_firing =
            (SELECT last_firing FROM subscription WHERE subscription.serial = subscription_item.subscription);
        ALTER TABLE subscription DROP COLUMN last_firing;

        CREATE INDEX firing_of_item ON firing (app, item, serial);

        CREATE TRIGGER device_profile_reason AFTER UPDATE OF reason ON device_profile WHEN old.reason IS NOT new.reason
            BEGIN UPDATE subscription SET revision = revision + 1 WHERE device = new.device AND status < 2; END;
        """
}
