package import CarillonCore

extension SQLiteStores {
    package func addEnvelope(_ envelope: EnvelopeRow, in store: any Store) async throws {
        let (device, now) = (envelope.device.rawValue, envelope.acceptedAt.milliseconds)
        try await run(
            """
            INSERT INTO envelope (position, secret, device, app, origin_kind, origin, origin_id, kind, size, accepted_at,
                expires_at, body)
            VALUES (\(envelope.position), randomblob(16), \(device), \(envelope.app.rawValue),
                \(envelope.originKind.rawValue), \(envelope.origin), randomblob(16), \(envelope.kind.rawValue), 128, \(now),
                \(now + 600_000), x'00');
            INSERT INTO inbox_index VALUES (\(device), 0, \(envelope.position), 128);
            """, in: store)
    }

    package func positions(in store: any Store) async throws -> [Int64] {
        try await numbers("SELECT position FROM envelope", in: store)
    }

    package func countOutcomes(_ name: String, in store: any Store) async throws -> Int {
        try await count("outcome", where: "outcome = \(Self.literal(name))", in: store)
    }

    package func addEndedRequest(of device: DeviceSerial, _ app: AppSerial, in store: any Store) async throws {
        let (device, app) = (device.rawValue, app.rawValue)
        try await run(
            """
            INSERT INTO service_request (serial, secret, id, consumer, consumer_app, provider, provider_app, fingerprint,
                expires_at, due_at, state)
            VALUES (1, randomblob(16), randomblob(16), \(device), \(app), \(device), \(app), x'00', 1, 1, 2)
            """, in: store)
    }
}
