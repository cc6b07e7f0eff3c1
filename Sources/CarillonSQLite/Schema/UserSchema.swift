/// Version 9 adds users of apps.
enum UserSchema {
    static let changes = """
        -- How an app's users are told, sealed under the key ring.
        CREATE TABLE user_rules (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            sealed BLOB NOT NULL,
            set_at INTEGER NOT NULL
        ) STRICT;

        -- Null of a device that is nobody's.
        ALTER TABLE device_profile ADD COLUMN user TEXT;
        CREATE INDEX device_profile_user ON device_profile (app, user, device) WHERE user IS NOT NULL;

        -- 1 of a channel that was opened for the device's user, and 2 when the device is not his any more: nobody can send to
        -- it, and it is to be closed.
        ALTER TABLE channel ADD COLUMN of_user INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX channel_of_former_user ON channel (serial) WHERE of_user = 2;
        """
}
