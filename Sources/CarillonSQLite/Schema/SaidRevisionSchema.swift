/// What version 24 adds: the names that devices give to what they say of themselves and of their services.
enum SaidRevisionSchema {
    static let changes = """
        ALTER TABLE device_profile ADD COLUMN said_revision TEXT;
        ALTER TABLE service_provider ADD COLUMN revision TEXT;
        """
}
