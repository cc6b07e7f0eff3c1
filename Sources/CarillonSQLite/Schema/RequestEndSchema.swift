/// Version 32 removes triggers. `RequestRules` decides how the requests of a device end that is deleted or is not a server any
/// more.
enum RequestEndSchema {
    static let changes = """
        DROP TRIGGER service_device_gone;
        DROP TRIGGER service_server_gone;
        """
}
