/// Version 16 adds to pushes the environment that a device reported, and the wake mode of outcomes.
enum ReachSchema {
    static let changes = """
        -- What the device said its token's environment is, where the vendor's service knew it in the other.
        ALTER TABLE device_profile ADD COLUMN said_environment TEXT;

        -- How the device was told of it while it waited, as envelope.wake; null of what never did.
        ALTER TABLE outcome ADD COLUMN wake INTEGER;

        -- What is kept only so that the next wake comes not too soon.
        CREATE INDEX wake_idle ON wake (pushed_at) WHERE due_at IS NULL AND push IS NULL AND unanswered = 0;
        """
}
