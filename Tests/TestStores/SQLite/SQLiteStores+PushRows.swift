package import CarillonCore

extension SQLiteStores {
    package func addPush(_ push: PushRow, in store: any Store) async throws {
        let dueAt = push.dueAt.map { "\($0.milliseconds)" } ?? "NULL"
        let (setAt, endsAt) = (push.setAt.milliseconds, push.endsAt.milliseconds)
        try await run(
            """
            INSERT INTO push (serial, id, device, lane, kind, first, last, state, state_at, due_at, set_at, expires_at, ends_at)
            VALUES (\(push.serial), randomblob(16), \(push.device.rawValue), \(push.queue), \(push.kind.rawValue),
                \(push.position), \(push.position), \(push.state.rawValue), \(setAt), \(dueAt), \(setAt), \(endsAt), \(endsAt))
            """, in: store)
    }

    package func keepPush(
        _ push: Int64, of subscription: SubscriptionSerial, at now: Timestamp, in store: any Store
    ) async throws {
        try await run(
            """
            INSERT INTO kept_push
            VALUES (\(push), randomblob(16), 1, \(subscription.rawValue), randomblob(16), 2, \(now.milliseconds), 0, x'00')
            """, in: store)
    }

    package func pushStates(in store: any Store) async throws -> [PushState?] {
        try await numbers("SELECT state FROM push ORDER BY serial", in: store).map { PushState(rawValue: Int($0)) }
    }

    package func keptPushes(in store: any Store) async throws -> [Int64] {
        try await numbers("SELECT push FROM kept_push", in: store)
    }

    package func countFiredPushes(in store: any Store) async throws -> Int {
        let kinds = [PushKind.trigger, .unconditional].map { "\($0.rawValue)" }.joined(separator: ", ")
        return try await count("push", where: "kind IN (\(kinds))", in: store)
    }

    package func shortenedPushes(in store: any Store) async throws -> [Bool] {
        try await numbers("SELECT is_shortened FROM push", in: store).map { $0 == 1 }
    }
}
