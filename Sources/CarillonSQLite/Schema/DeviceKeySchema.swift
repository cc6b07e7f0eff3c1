/// Version 41 removes the index of devices by key.
enum DeviceKeySchema {
    static let changes = """
        DROP INDEX device_of_key;
        """
}
