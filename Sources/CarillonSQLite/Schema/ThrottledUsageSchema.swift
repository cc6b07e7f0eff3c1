/// Adds the size of a throttled firing to its row and its indexes, and removes the table with the usage of throttled firings.
enum ThrottledUsageSchema {
    static let changes = """
        DROP TRIGGER held_firing_enters;
        DROP TRIGGER held_firing_leaves;
        DROP TABLE held_usage;
        ALTER TABLE held_firing ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
        UPDATE held_firing SET bytes = length(notification);
        CREATE INDEX held_firing_of_device ON held_firing (device, bytes);
        DROP INDEX held_firing_of;
        CREATE INDEX held_firing_of ON held_firing (subscription, item, serial, bytes);
        """
}
