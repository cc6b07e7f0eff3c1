/// Adds the platform and the environment of the push token that a device had last, while it has none.
enum FormerServiceSchema {
    static let changes = """
        ALTER TABLE device_profile ADD COLUMN former_platform TEXT;
        ALTER TABLE device_profile ADD COLUMN former_environment TEXT;
        """
}
