/// What version 41 removes: the index of devices by key. The devices of a key are found among the devices of its app.
enum DeviceKeySchema {
    static let changes = """
        DROP INDEX device_of_key;
        """
}
