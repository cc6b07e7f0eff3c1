/// What version 32 removes: `RequestRules` decides what becomes of the requests of a device that is deleted or is not a server any more.
enum RequestEndSchema {
    static let changes = """
        DROP TRIGGER service_device_gone;
        DROP TRIGGER service_server_gone;
        """
}
