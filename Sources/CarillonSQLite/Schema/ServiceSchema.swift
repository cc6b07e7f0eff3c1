/// Version 18 adds services between apps.
enum ServiceSchema {
    static let changes = """
        -- Apps of one realm share their users.
        ALTER TABLE app ADD COLUMN realm TEXT;
        CREATE INDEX app_of_realm ON app (realm) WHERE realm IS NOT NULL;

        -- What a device says of itself to those who may call it. keys is JSON.
        CREATE TABLE service_provider (
            device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE,
            name TEXT NOT NULL,
            version TEXT NOT NULL,
            keys TEXT NOT NULL,
            icon_name TEXT,
            icon BLOB
        ) STRICT;
        CREATE TABLE service_offer (
            device INTEGER NOT NULL REFERENCES service_provider ON DELETE CASCADE,
            service TEXT NOT NULL,
            version TEXT NOT NULL,
            PRIMARY KEY (device, service, version)
        ) STRICT, WITHOUT ROWID;

        -- The devices that operators made servers: providers that all users of the app and its realm may call, and that may call them.
        CREATE TABLE service_cluster (
            device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE,
            app INTEGER NOT NULL,
            host TEXT,
            port INTEGER,
            priority INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX service_cluster_of_app ON service_cluster (app);

        -- serial and secret are of the request's envelope. due_at is when time changes it next: its deadline, or, of one that is finished
        -- (state 2), when it is forgotten. fault is what the server ends it with.
        CREATE TABLE service_request (
            serial INTEGER PRIMARY KEY,
            secret BLOB NOT NULL CHECK (length(secret) = 16),
            id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
            consumer INTEGER NOT NULL,
            consumer_app INTEGER NOT NULL,
            provider INTEGER NOT NULL,
            provider_app INTEGER NOT NULL,
            fingerprint BLOB NOT NULL,
            expires_at INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            state INTEGER NOT NULL DEFAULT 0,
            is_unwanted INTEGER NOT NULL DEFAULT 0,
            fault TEXT,
            reply_hash BLOB
        ) STRICT;
        CREATE INDEX service_request_due ON service_request (state = 2, due_at);
        CREATE INDEX service_request_of_consumer ON service_request (consumer, provider) WHERE state < 2;
        CREATE INDEX service_request_of_provider ON service_request (provider) WHERE state < 2;

        CREATE TRIGGER service_device_gone AFTER DELETE ON device BEGIN
            DELETE FROM service_request WHERE state < 2 AND consumer = OLD.serial;
            UPDATE service_request SET due_at = 0, fault = 'application_not_found' WHERE state < 2 AND provider = OLD.serial;
        END;
        CREATE TRIGGER service_server_gone AFTER DELETE ON service_cluster BEGIN
            DELETE FROM service_request WHERE state < 2 AND consumer = OLD.device;
            UPDATE service_request SET due_at = 0, fault = 'application_not_found' WHERE state < 2 AND provider = OLD.device;
        END;
        CREATE TRIGGER service_user_changed AFTER UPDATE OF user ON device_profile WHEN OLD.user IS NOT NEW.user BEGIN
            DELETE FROM service_provider WHERE device = OLD.device;
            DELETE FROM service_request WHERE state < 2 AND consumer = OLD.device;
            UPDATE service_request SET due_at = 0, fault = 'user_mismatch' WHERE state < 2 AND provider = OLD.device;
        END;
        """
}
