package import CarillonCore

extension SQLiteStores {
    package func addDevices(_ count: Int, to app: AppSerial, in store: any Store) async throws {
        try await run(
            """
            WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < \(count))
            INSERT INTO device (id, app, credential_hash, created_at)
            SELECT randomblob(16), \(app.rawValue), randomblob(32), 0 FROM number;
            \(Self.adding(count, to: "devices", of: "\(app.rawValue)"))
            """, in: store)
    }

    package func countDevices(upTo serial: DeviceSerial, in store: any Store) async throws -> Int {
        try await count("device", where: "serial <= \(serial.rawValue)", in: store)
    }

    package func setUser(_ user: String?, in store: any Store) async throws {
        try await run("UPDATE device_profile SET user = \(Self.literal(user))", in: store)
    }

    package func setBadges(_ badge: Int, in store: any Store) async throws {
        try await run("UPDATE device_profile SET badge = \(badge)", in: store)
    }

    package func badges(in store: any Store) async throws -> [Int] {
        try await numbers("SELECT badge FROM device_profile", in: store).map { Int($0) }
    }

    package func ageStatuses(in store: any Store) async throws {
        try await run("UPDATE device_profile SET status_at = 0, status_served = 0", in: store)
    }

    package func seeDevices(at moment: Timestamp, whenOneIsRemovedFrom store: any Store) async throws {
        try await run(
            """
            CREATE TRIGGER comes AFTER DELETE ON device BEGIN UPDATE device SET seen_at = \(moment.milliseconds); END
            """, in: store)
    }

    package func stopSeeingDevices(in store: any Store) async throws {
        try await run("DROP TRIGGER comes; UPDATE device SET seen_at = 0", in: store)
    }

    package func channels(in store: any Store) async throws -> [ChannelSerial] {
        try await numbers("SELECT serial FROM channel ORDER BY serial", in: store).map(ChannelSerial.init)
    }

    package func ownersOfChannels(in store: any Store) async throws -> [Int] {
        try await numbers("SELECT of_user FROM channel ORDER BY serial", in: store).map { Int($0) }
    }

    package func damageWatch(_ watch: WatchSerial, in store: any Store) async throws {
        try await run("UPDATE watch SET ping_address = 'none' WHERE serial = \(watch.rawValue)", in: store)
    }

    package func countDisconnectCallbacks(because reason: String, in store: any Store) async throws -> Int {
        try await count("disconnect_callback", where: "reason = \(Self.literal(reason))", in: store)
    }
}
