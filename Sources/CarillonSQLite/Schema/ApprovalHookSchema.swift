/// What version 13 adds: apps whose own servers are asked whether something may be.
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
