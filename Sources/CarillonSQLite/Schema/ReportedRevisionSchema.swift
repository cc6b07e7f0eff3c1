/// Version 24 adds the revisions of the reports of devices about themselves and their services.
enum ReportedRevisionSchema {
    static let changes = """
        ALTER TABLE device_profile ADD COLUMN said_revision TEXT;
        ALTER TABLE service_provider ADD COLUMN revision TEXT;
        """
}
