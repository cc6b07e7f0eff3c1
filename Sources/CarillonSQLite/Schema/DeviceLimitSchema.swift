/// Version 10 adds the number of devices of an app, and the number of token transfers of a push token that no device has now.
enum DeviceLimitSchema {
    static let changes = """
        ALTER TABLE app ADD COLUMN devices INTEGER NOT NULL DEFAULT 0;
        UPDATE app SET devices = (SELECT count(*) FROM device WHERE device.app = app.serial);
        CREATE TRIGGER device_inserted AFTER INSERT ON device
            BEGIN UPDATE app SET devices = devices + 1 WHERE serial = new.app; END;
        CREATE TRIGGER device_deleted AFTER DELETE ON device
            BEGIN UPDATE app SET devices = devices - 1 WHERE serial = old.app; END;

        -- Takings of a day (device_profile.takings), kept beyond the device that had the token last.
        CREATE TABLE released_token (
            app INTEGER NOT NULL,
            platform TEXT NOT NULL,
            token BLOB NOT NULL,
            takings INTEGER NOT NULL,
            taken_on INTEGER NOT NULL,
            PRIMARY KEY (app, platform, token)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX released_token_day ON released_token (taken_on);
        CREATE TRIGGER token_released AFTER UPDATE OF token ON device_profile
            WHEN old.takings > 0 AND old.token IS NOT NULL AND old.token IS NOT new.token
            BEGIN \(remember) END;
        CREATE TRIGGER token_deleted AFTER DELETE ON device_profile
            WHEN old.takings > 0 AND old.token IS NOT NULL
            BEGIN \(remember) END;
        """

    /// Stores a released token, and removes some released tokens of earlier days. The statement that fires a trigger decides
    /// how its conflicts are resolved.
    private static let remember = """
        DELETE FROM released_token WHERE app = old.app AND platform = old.platform AND token = old.token;
        INSERT INTO released_token VALUES (old.app, old.platform, old.token, old.takings, old.taken_on);
        DELETE FROM released_token WHERE (app, platform, token) IN
            (SELECT app, platform, token FROM released_token WHERE taken_on < old.taken_on LIMIT 10);
        """
}
