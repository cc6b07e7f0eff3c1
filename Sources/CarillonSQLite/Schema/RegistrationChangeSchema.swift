/// Version 35 removes triggers. `RegistrationRules` counts the devices of an app and decides which released tokens are kept, and
/// the store writes both with the rows of devices.
enum RegistrationChangeSchema {
    static let changes = """
        DROP TRIGGER device_inserted;
        DROP TRIGGER device_deleted;
        DROP TRIGGER token_released;
        DROP TRIGGER token_deleted;
        """
}
