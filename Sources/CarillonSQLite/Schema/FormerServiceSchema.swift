/// Adds the platform and the environment of the push token that a device had last, while it has none. The file does not have them of a
/// device that lost its token before: its platform can only be Apple's, and its environment counts as `production` if the device did
/// not say another one.
enum FormerServiceSchema {
    static let changes = """
        ALTER TABLE device_profile ADD COLUMN former_platform TEXT;
        ALTER TABLE device_profile ADD COLUMN former_environment TEXT;
        UPDATE device_profile SET former_platform = 'apple', former_environment = coalesce(said_environment, 'production')
            WHERE token IS NULL AND reason = 'token_taken';
        """
}
