/// Adds to pushes whether they wait for another address of their device.
enum PushAddressSchema {
    static let changes = """
        -- 1 of a push that is rejected or parked because of its device's address: it is sent to the next one.
        ALTER TABLE push ADD COLUMN awaits_address INTEGER NOT NULL DEFAULT 0;
        UPDATE push SET awaits_address = 1 WHERE state = 6 AND kind <> 0 AND reason = 'DeviceTokenNotForTopic';
        """
}
