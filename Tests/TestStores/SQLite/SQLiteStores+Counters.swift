package import CarillonCore

extension SQLiteStores {
    /// Returns SQL that adds to a number of an app.
    static func adding(_ value: Int, to name: String, of app: String) -> String {
        """
        INSERT INTO counter (app, name, home, value) VALUES (\(app), '\(name)', 0, \(value))
            ON CONFLICT (app, name, home) DO UPDATE SET value = counter.value + excluded.value;
        """
    }

    /// Returns SQL that sets a number of all apps.
    static func setting(_ name: String, to value: String) -> String {
        """
        DELETE FROM counter WHERE name = '\(name)';
        INSERT INTO counter (app, name, home, value) SELECT serial, '\(name)', 0, \(value) FROM app;
        """
    }

    package func wrongCounters(in store: any Store) async throws -> [String] {
        var wrong: [String] = []
        for (name, rows) in Self.counted {
            let apps = try await numbers(
                """
                SELECT app FROM (
                    SELECT app, name, value FROM counter WHERE name LIKE '\(name)'
                    UNION ALL SELECT app, name, -value FROM (\(rows)) AS counted
                ) AS compared GROUP BY app, name HAVING sum(value) <> 0
                """, in: store)
            wrong += apps.map { "\(name) of \($0)" }
        }
        let isKnown = Self.counted.map { "name LIKE '\($0.name)'" }.joined(separator: " OR ")
        let unknown = try await numbers("SELECT app FROM counter WHERE NOT (\(isKnown))", in: store)
        return wrong + unknown.map { "a number that is not known, of \($0)" }
    }

    /// The patterns of the names of numbers, and the counted rows of each.
    private static let counted: [(name: String, rows: String)] = [
        ("envelopes", "SELECT 0 AS app, 'envelopes' AS name, 1 AS value FROM envelope"),
        ("envelope_bytes", "SELECT 0 AS app, 'envelope_bytes' AS name, size AS value FROM envelope"),
        ("devices", "SELECT app, 'devices' AS name, 1 AS value FROM device"),
        ("items", "SELECT app, 'items' AS name, 1 AS value FROM item"),
        ("subscriptions", "SELECT app, 'subscriptions' AS name, 1 AS value FROM subscription"),
        ("watches", "SELECT app, 'watches' AS name, 1 AS value FROM watch"),
        ("callbacks", "SELECT app, 'callbacks' AS name, 1 AS value FROM disconnect_callback"),
        (
            "attachment_bytes:%",
            """
            SELECT app, 'attachment_bytes:' || allowance AS name, charged AS value FROM attachment
            UNION ALL SELECT app, 'attachment_bytes:', charged FROM attachment
            """
        ),
    ]
}
