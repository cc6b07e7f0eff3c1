/// Adds the platform and the environment of the last push token of a device that has none. A file of an earlier version has them
/// only for a device whose token was taken after the gateway had corrected the environment: `said_environment` is then the other
/// one. The columns of other devices stay empty: their next token needs a platform.
enum FormerServiceSchema {
    static let changes = """
        ALTER TABLE device_profile ADD COLUMN former_platform TEXT;
        ALTER TABLE device_profile ADD COLUMN former_environment TEXT;
        UPDATE device_profile SET former_platform = 'apple',
            former_environment = CASE said_environment WHEN 'sandbox' THEN 'production' ELSE 'sandbox' END
            WHERE token IS NULL AND reason = 'token_taken' AND said_environment IN ('sandbox', 'production');
        """
}
