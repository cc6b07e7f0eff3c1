/// What version 35 removes: `RegistrationRules` decides how many devices an app has, and which tokens are remembered when they are
/// released. The store writes both with the rows of devices.
enum RegistrationChangeSchema {
    static let changes = """
        DROP TRIGGER device_inserted;
        DROP TRIGGER device_deleted;
        DROP TRIGGER token_released;
        DROP TRIGGER token_deleted;
        """
}
