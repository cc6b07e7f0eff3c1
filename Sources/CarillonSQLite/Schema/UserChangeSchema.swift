/// Version 23: all data that ends with a device's user ends in the transaction that changes the user, as `UserChange` in
/// CarillonCore defines. Ids of cancelled requests are kept for a short time.
enum UserChangeSchema {
    static let changes = """
        DROP TRIGGER binding_user_changed;
        DROP TRIGGER service_user_changed;

        -- As channel.of_user: 1 if it was made for the user of the device, 2 if that user has left.
        ALTER TABLE attachment ADD COLUMN of_user INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE attachment_reader ADD COLUMN of_user INTEGER NOT NULL DEFAULT 0;
        UPDATE attachment SET of_user = 1 WHERE device IN (SELECT device FROM device_profile WHERE user NOT NULL);
        UPDATE attachment_reader SET of_user = 1 WHERE device IN (SELECT device FROM device_profile WHERE user NOT NULL);
        CREATE INDEX attachment_of_former_user ON attachment (serial) WHERE of_user = 2 AND NOT is_complete;
        CREATE INDEX attachment_reader_of_former_user ON attachment_reader (device) WHERE of_user = 2;

        -- is_abandoned: the consumer has another user, and the request is to be ended. is_undelivered: it was cancelled before its delivery.
        ALTER TABLE service_request ADD COLUMN is_abandoned INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE service_request ADD COLUMN is_undelivered INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX service_request_undelivered ON service_request (consumer, due_at, serial) WHERE is_undelivered;
        """
}
