/// The table of version 7: the reports of devices. A device without a report has no row.
enum RegistrationSchema {
    static let changes = """
        -- confirmed_at is when the device last said that the token is its own, to the day. takings is how often the token
        -- went from device to device on the day taken_on, counted in days since 1970. reason is null of a device that is
        -- registered, and why it is suspended of another.
        CREATE TABLE device_profile (
            device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE,
            app INTEGER NOT NULL,
            platform TEXT,
            token BLOB,
            environment TEXT,
            revision INTEGER NOT NULL,
            confirmed_at INTEGER NOT NULL,
            takings INTEGER NOT NULL,
            taken_on INTEGER NOT NULL,
            reason TEXT,
            status_at INTEGER NOT NULL,
            app_version TEXT,
            locale TEXT,
            time_zone TEXT,
            parameters BLOB,
            CHECK ((token IS NULL) = (platform IS NULL) AND (token IS NULL) = (environment IS NULL))
        ) STRICT;
        CREATE UNIQUE INDEX device_profile_token ON device_profile (app, platform, token) WHERE token IS NOT NULL;
        CREATE INDEX device_profile_suspended ON device_profile (app, device) WHERE reason IS NOT NULL;
        """
}
