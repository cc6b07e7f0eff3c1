/// Version 3 adds the owner of every row, against whose quota the row counts.
enum AllowanceSchema {
    static let changes = """
        CREATE INDEX envelope_final ON envelope (device, position) WHERE outcome IS NOT NULL;

        ALTER TABLE idempotency ADD COLUMN device INTEGER NOT NULL DEFAULT 0;
        UPDATE idempotency SET device = coalesce((SELECT device FROM channel WHERE serial = channel), 0);
        CREATE INDEX idempotency_of_device ON idempotency (device, valid_until);

        -- seen_at is when the device last connected, to the hour; is_anonymous tells that it never registered.
        ALTER TABLE device ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE device ADD COLUMN is_anonymous INTEGER NOT NULL DEFAULT 0;
        UPDATE device SET seen_at = unixepoch() * 1000;
        CREATE INDEX device_anonymous ON device (seen_at) WHERE is_anonymous;
        """
}
