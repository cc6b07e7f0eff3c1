/// Adds the addresses of anonymous devices, so that the number of devices of one address can be limited.
enum AnonymousAddressSchema {
    static let changes = """
        -- address: 4 bytes of IPv4, or the first 8 of IPv6, at the moment when the device was stored.
        CREATE TABLE anonymous_address (
            device INTEGER PRIMARY KEY REFERENCES device ON DELETE CASCADE,
            address BLOB NOT NULL CHECK (length(address) IN (4, 8))
        ) STRICT;
        CREATE INDEX anonymous_address_devices ON anonymous_address (address);
        """
}
