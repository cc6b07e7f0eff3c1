/// Version 14 adds throttled firings, and pushes that are sent even if their envelope was acknowledged.
enum ThrottledFiringSchema {
    static let changes = """
        -- Firings a second, and how many of an item wait.
        ALTER TABLE subscription ADD COLUMN max_frequency REAL;
        ALTER TABLE subscription ADD COLUMN buffer_size INTEGER;
        -- When its device was last told of the item.
        ALTER TABLE subscription_item ADD COLUMN told_at INTEGER;

        -- Rendered. due_at is that of the first of a subscription and an item; null of those behind it.
        CREATE TABLE held_firing (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            subscription INTEGER NOT NULL REFERENCES subscription ON DELETE CASCADE,
            device INTEGER NOT NULL,
            item TEXT NOT NULL,
            revision INTEGER NOT NULL,
            notification BLOB NOT NULL,
            ttl INTEGER NOT NULL,
            is_always_pushed INTEGER NOT NULL,
            due_at INTEGER
        ) STRICT;
        CREATE INDEX held_firing_of ON held_firing (subscription, item, serial);
        CREATE INDEX held_firing_due ON held_firing (due_at) WHERE due_at NOT NULL;

        -- How much waits of a device.
        CREATE TABLE held_usage (
            device INTEGER PRIMARY KEY,
            firings INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT;
        CREATE TRIGGER held_firing_enters AFTER INSERT ON held_firing BEGIN
            INSERT INTO held_usage (device, firings, bytes) VALUES (new.device, 1, length(new.notification))
                ON CONFLICT (device) DO UPDATE SET firings = firings + 1, bytes = bytes + excluded.bytes;
        END;
        CREATE TRIGGER held_firing_leaves AFTER DELETE ON held_firing BEGIN
            UPDATE held_usage SET firings = firings - 1, bytes = bytes - length(old.notification) WHERE device = old.device;
            DELETE FROM held_usage WHERE device = old.device AND firings = 0;
        END;

        -- What a push shows whose message may be acknowledged before it goes out.
        CREATE TABLE kept_push (
            push INTEGER PRIMARY KEY REFERENCES push ON DELETE CASCADE,
            message BLOB NOT NULL CHECK (length(message) = 16),
            app INTEGER NOT NULL,
            subscription INTEGER NOT NULL,
            subscription_id BLOB NOT NULL CHECK (length(subscription_id) = 16),
            urgency INTEGER NOT NULL,
            accepted_at INTEGER NOT NULL,
            counts_badge INTEGER NOT NULL,
            body BLOB NOT NULL
        ) STRICT;
        """
}
