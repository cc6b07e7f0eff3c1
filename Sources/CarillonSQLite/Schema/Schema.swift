import GRDB

/// The tables, and the steps that migrate a file of an earlier version.
enum Schema {
    static let version = 41
    /// "Cari": marks the file as Carillon's (`PRAGMA application_id`).
    static let applicationID: Int32 = 0x4361_7269

    /// Migrates a new file, or a file of an earlier version, to this version, in the transaction of the caller.
    static func bringUpToDate(_ db: Database) throws { try bring(db, to: version) }

    /// - Parameter version: This version or an earlier one.
    static func bring(_ db: Database, to version: Int) throws {
        let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard found < version else { return }
        for step in found + 1...version { try steps[step - 1](db) }
        try db.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version);")
    }

    private static let steps: [@Sendable (Database) throws -> Void] = [
        { try createInboxes(in: $0) },
        { try $0.execute(sql: WatchSchema.tables) },
        {
            try $0.execute(sql: AllowanceSchema.changes)
            try CallSchema.bringUpToDate($0)
            try $0.execute(sql: ServerSchema.tables)
            try rememberKeysOfDevices(in: $0)
        },
        { try InboxSchema.bringUpToDate($0) },
        { try $0.execute(sql: InboxIndexSchema.changes) },
        { try $0.execute(sql: LeasedWorkSchema.changes) },
        { try $0.execute(sql: RegistrationSchema.changes) },
        { try $0.execute(sql: PushSchema.changes) },
        { try $0.execute(sql: UserSchema.changes) },
        { try $0.execute(sql: DeviceLimitSchema.changes) },
        { try $0.execute(sql: SubscriptionSchema.changes) },
        { try $0.execute(sql: FiringSchema.changes) },
        { try $0.execute(sql: ApprovalHookSchema.changes) },
        { try $0.execute(sql: ThrottledFiringSchema.changes) },
        { try $0.execute(sql: SuspensionSchema.changes + UpdateSchema.changes) },
        { try $0.execute(sql: MissedContentSchema.changes + ReachSchema.changes) },
        { try $0.execute(sql: AttachmentSchema.changes) },
        { try $0.execute(sql: ServiceSchema.changes) },
        { try $0.execute(sql: ServedTimeSchema.changes) },
        { try $0.execute(sql: PushAddressSchema.changes) },
        { try $0.execute(sql: DistinctFiringSchema.changes) },
        { try $0.execute(sql: ShortenedPushSchema.changes) },
        { try $0.execute(sql: UserChangeSchema.changes) },
        { try $0.execute(sql: ReportedRevisionSchema.changes) },
        { try $0.execute(sql: AttachmentShareSchema.changes) },
        { try $0.execute(sql: ReceptionSchema.changes) },
        { try $0.execute(sql: PauseSchema.changes) },
        { try $0.execute(sql: AnonymousAddressSchema.changes) },
        { try $0.execute(sql: CrossingSchema.changes) },
        { try $0.execute(sql: AppliedRulesSchema.changes) },
        { try $0.execute(sql: FormerServiceSchema.changes) },
        { try $0.execute(sql: RequestEndSchema.changes) },
        { try $0.execute(sql: ThrottledUsageSchema.changes) },
        { try $0.execute(sql: WatchUsageSchema.changes) },
        { try $0.execute(sql: RegistrationChangeSchema.changes) },
        { try $0.execute(sql: AppDocumentSchema.changes) },
        { try $0.execute(sql: HomeSchema.changes) },
        { try $0.execute(sql: TriggerRemovalSchema.changes) },
        { try $0.execute(sql: HandOverSchema.changes) },
        { try $0.execute(sql: CounterSchema.changes) },
        { try $0.execute(sql: DeviceKeySchema.changes) },
    ]

    /// Devices of earlier files have no known key.
    private static func rememberKeysOfDevices(in db: Database) throws {
        try db.execute(
            sql: """
                ALTER TABLE device ADD COLUMN access_key INTEGER;
                CREATE INDEX device_of_key ON device (access_key) WHERE access_key IS NOT NULL;
                """)
    }

    private static func createInboxes(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE app (
                    serial INTEGER PRIMARY KEY AUTOINCREMENT,
                    id TEXT NOT NULL UNIQUE,
                    created_at INTEGER NOT NULL
                ) STRICT;

                CREATE TABLE access_key (
                    id INTEGER PRIMARY KEY,
                    role TEXT NOT NULL CHECK (role IN ('admin', 'sender', 'client')),
                    app INTEGER REFERENCES app ON DELETE CASCADE,
                    name TEXT,
                    secret_hash BLOB NOT NULL,
                    earlier_hash BLOB,
                    earlier_until INTEGER,
                    created_at INTEGER NOT NULL,
                    revoked_at INTEGER,
                    CHECK ((role = 'admin') = (app IS NULL))
                ) STRICT;
                CREATE INDEX access_key_of_app ON access_key (app);

                CREATE TABLE device (
                    serial INTEGER PRIMARY KEY AUTOINCREMENT,
                    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
                    app INTEGER NOT NULL REFERENCES app ON DELETE CASCADE,
                    credential_hash BLOB NOT NULL UNIQUE,
                    created_at INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX device_of_app ON device (app);

                CREATE TABLE channel (
                    serial INTEGER PRIMARY KEY AUTOINCREMENT,
                    device INTEGER NOT NULL REFERENCES device ON DELETE CASCADE,
                    id BLOB NOT NULL CHECK (length(id) = 16),
                    name TEXT,
                    vapid_key BLOB,
                    created_at INTEGER NOT NULL,
                    UNIQUE (device, id)
                ) STRICT;

                CREATE TABLE token_key (
                    id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 255),
                    bytes BLOB NOT NULL CHECK (length(bytes) = 32),
                    created_at INTEGER NOT NULL
                ) STRICT;

                -- One row for each message from its acceptance until its outcome is forgotten. It waits while outcome
                -- is null. due_at is when time changes it next: it expires, or it is forgotten.
                CREATE TABLE envelope (
                    position INTEGER PRIMARY KEY,
                    secret BLOB NOT NULL CHECK (length(secret) = 16),
                    device INTEGER NOT NULL,
                    app INTEGER NOT NULL,
                    channel INTEGER NOT NULL,
                    channel_id BLOB NOT NULL,
                    kind INTEGER NOT NULL,
                    event_code INTEGER,
                    topic TEXT,
                    coding TEXT,
                    encryption TEXT,
                    crypto_key TEXT,
                    body BLOB,
                    accepted_at INTEGER NOT NULL,
                    expires_at INTEGER NOT NULL,
                    outcome TEXT,
                    outcome_code INTEGER,
                    final_at INTEGER,
                    due_at INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX envelope_waiting ON envelope (device, position) WHERE outcome IS NULL;
                CREATE INDEX envelope_waiting_due ON envelope (device, due_at) WHERE outcome IS NULL;
                CREATE UNIQUE INDEX envelope_topic ON envelope (channel, topic)
                    WHERE outcome IS NULL AND topic IS NOT NULL;
                CREATE INDEX envelope_due ON envelope (due_at);

                CREATE TABLE idempotency (
                    channel INTEGER NOT NULL,
                    key_hash BLOB NOT NULL,
                    fingerprint BLOB NOT NULL,
                    position INTEGER NOT NULL,
                    secret BLOB NOT NULL,
                    accepted_at INTEGER NOT NULL,
                    expires_at INTEGER NOT NULL,
                    valid_until INTEGER NOT NULL,
                    PRIMARY KEY (channel, key_hash)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX idempotency_end ON idempotency (valid_until);
                """)
    }
}
