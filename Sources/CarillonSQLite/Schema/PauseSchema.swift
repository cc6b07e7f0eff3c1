/// Version 27 adds the pausing of updates.
enum PauseSchema {
    static let changes = """
        -- Since when a live update is paused: no device is given it. Null: it is not paused.
        ALTER TABLE audience_update ADD COLUMN paused_at INTEGER;
        -- Counts updates that were resumed: with each, what was held against the log before does not count.
        ALTER TABLE app ADD COLUMN log_revision INTEGER NOT NULL DEFAULT 0;
        """
}
