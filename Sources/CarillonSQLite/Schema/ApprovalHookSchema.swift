/// Version 13 adds the approval hooks of apps.
enum ApprovalHookSchema {
    static let changes = """
        CREATE TABLE app_veto (
            app INTEGER PRIMARY KEY REFERENCES app ON DELETE CASCADE,
            address TEXT NOT NULL,
            secret BLOB NOT NULL,
            set_at INTEGER NOT NULL
        ) STRICT;
        """
}
