/// Version 11 adds items, item subscriptions, and their firings.
enum SubscriptionSchema {
    static let changes = """
        -- What an app says of its items, as JSON.
        CREATE TABLE item_rules (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            document TEXT NOT NULL,
            set_at INTEGER NOT NULL
        ) STRICT;

        -- What stands in an item, and what stood there before its last update; fields and places are as ValueCoding writes
        -- them. version counts its updates.
        CREATE TABLE item (
            app INTEGER NOT NULL,
            name TEXT NOT NULL,
            mode INTEGER NOT NULL,
            fields BLOB NOT NULL,
            previous BLOB,
            updated_at INTEGER NOT NULL,
            version INTEGER NOT NULL,
            places BLOB,
            PRIMARY KEY (app, name)
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE app ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
        CREATE TRIGGER item_inserted AFTER INSERT ON item
            BEGIN UPDATE app SET items = items + 1 WHERE serial = new.app; END;
        CREATE TRIGGER item_deleted AFTER DELETE ON item
            BEGIN UPDATE app SET items = items - 1 WHERE serial = old.app; END;

        -- status 2 is of one that ended, and is still to be taken out of its inbox. last_firing is the number of the firing that
        -- told it last. since is when the policy began to count.
        CREATE TABLE subscription (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
            device INTEGER NOT NULL REFERENCES device ON DELETE CASCADE,
            app INTEGER NOT NULL,
            user TEXT,
            key TEXT,
            fields BLOB NOT NULL,
            tags BLOB NOT NULL,
            mode INTEGER,
            condition TEXT,
            format TEXT NOT NULL,
            policy INTEGER NOT NULL,
            cool_down INTEGER NOT NULL,
            items INTEGER NOT NULL,
            status INTEGER NOT NULL,
            status_at INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            fired_at INTEGER,
            last_firing INTEGER NOT NULL DEFAULT 0,
            expires_at INTEGER,
            created_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX subscription_of_device ON subscription (device, serial);
        CREATE UNIQUE INDEX subscription_key ON subscription (device, key) WHERE key NOT NULL AND status < 2;
        CREATE INDEX subscription_end ON subscription (expires_at) WHERE expires_at NOT NULL AND status < 2;
        CREATE INDEX subscription_ended ON subscription (serial) WHERE status = 2;
        ALTER TABLE app ADD COLUMN subscriptions INTEGER NOT NULL DEFAULT 0;
        CREATE TRIGGER subscription_inserted AFTER INSERT ON subscription
            BEGIN UPDATE app SET subscriptions = subscriptions + 1 WHERE serial = new.app; END;
        CREATE TRIGGER subscription_deleted AFTER DELETE ON subscription
            BEGIN UPDATE app SET subscriptions = subscriptions - 1 WHERE serial = old.app; END;

        -- One condition of each shape.
        CREATE TABLE condition_shape (
            serial INTEGER PRIMARY KEY,
            shape TEXT NOT NULL UNIQUE,
            source TEXT NOT NULL
        ) STRICT;

        -- place is where an item's subscription stands among its items; version is how many updates the item had had when it was
        -- armed. shape and constants are those of the condition.
        CREATE TABLE subscription_item (
            app INTEGER NOT NULL,
            item TEXT NOT NULL,
            subscription INTEGER NOT NULL REFERENCES subscription ON DELETE CASCADE,
            place INTEGER NOT NULL,
            shape INTEGER,
            constants BLOB,
            version INTEGER NOT NULL,
            PRIMARY KEY (app, item, subscription)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX subscription_item_of ON subscription_item (subscription, place);
        CREATE INDEX subscription_item_shape ON subscription_item (shape) WHERE shape NOT NULL;

        -- Rows that are gone, and of which who watches was not told.
        CREATE TABLE unwatched (
            serial INTEGER PRIMARY KEY,
            app INTEGER NOT NULL,
            item TEXT NOT NULL,
            subscription INTEGER NOT NULL,
            shape INTEGER
        ) STRICT;
        CREATE TRIGGER subscription_item_deleted AFTER DELETE ON subscription_item BEGIN
            INSERT INTO unwatched (app, item, subscription, shape)
            VALUES (old.app, old.item, old.subscription, old.shape);
        END;

        -- What an update fired, until all were told. targets are pairs of a subscription and its revision; done counts those
        -- that were told.
        CREATE TABLE firing (
            serial INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            item TEXT NOT NULL,
            mode INTEGER NOT NULL,
            fields BLOB NOT NULL,
            previous BLOB,
            updated_at INTEGER NOT NULL,
            targets BLOB NOT NULL,
            done INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        """
}
