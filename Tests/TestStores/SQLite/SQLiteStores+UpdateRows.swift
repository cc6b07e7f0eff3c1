package import CarillonCore

extension SQLiteStores {
    // MARK: Updates

    package func updates(in store: any Store) async throws -> [UpdateSerial] {
        try await numbers("SELECT serial FROM audience_update ORDER BY serial", in: store).map(UpdateSerial.init)
    }

    package func countLiveUpdates(in store: any Store) async throws -> Int {
        try await count("audience_update", where: "status = 0", in: store)
    }

    package func countWakingUpdates(in store: any Store) async throws -> Int {
        try await count("audience_update", where: "woken_to NOT NULL", in: store)
    }

    package func countResyncs(in store: any Store) async throws -> Int {
        try await count("audience_update", where: "is_resync", in: store)
    }

    package func staleUpdates(in store: any Store) async throws -> [UpdateSerial] {
        try await numbers("SELECT serial FROM audience_update WHERE is_left_over", in: store).map(UpdateSerial.init)
    }

    package func pauseUpdates(in store: any Store) async throws {
        try await run("UPDATE audience_update SET paused_at = 1 WHERE status = 0", in: store)
    }

    package func hideUnfinished(of update: UpdateSerial, in store: any Store) async throws {
        try await run("UPDATE audience_update SET is_left_over = 0 WHERE serial = \(update.rawValue)", in: store)
    }

    // MARK: Bindings

    package func hasBinding(ofProfile profile: String, in store: any Store) async throws -> Bool {
        try await count("binding", where: "profile = \(Self.literal(profile))", in: store) > 0
    }

    package func countStaleBindings(in store: any Store) async throws -> Int {
        try await count("binding", where: "is_left_over", in: store)
    }

    package func countLocatedBindings(in store: any Store) async throws -> Int {
        try await count("binding", where: "locations NOT NULL OR located_at NOT NULL", in: store)
    }

    package func countBindings(withParameters text: String, in store: any Store) async throws -> Int {
        try await count(
            "binding", where: "instr(CAST(parameters AS TEXT), \(Self.literal(text))) > 0", in: store)
    }

    package func countBindings(withPlaces text: String, in store: any Store) async throws -> Int {
        try await count("binding", where: "instr(CAST(locations AS TEXT), \(Self.literal(text))) > 0", in: store)
    }

    // MARK: Completions

    package func addUnfinished(
        of update: UpdateSerial?, _ binding: BindingSerial, entry: Int, orderKey: String?, in store: any Store
    ) async throws {
        let condition = update.map { " WHERE serial = \($0.rawValue)" } ?? ""
        try await run(
            """
            INSERT INTO completion (in_update, binding, entry, state, attempt, failures, changed_at, order_key)
            SELECT serial, \(binding.rawValue), \(entry), 0, 0, 0, 0, \(Self.literal(orderKey)) FROM audience_update\(condition)
            """, in: store)
    }

    package func report(_ update: UpdateSerial, in store: any Store) async throws {
        try await run("UPDATE completion SET state = 2, due_at = 1 WHERE in_update = \(update.rawValue)", in: store)
    }

    package func makeReceivedDue(in store: any Store) async throws {
        try await run("UPDATE completion SET state = 1, is_received = 1, due_at = 0", in: store)
    }

    package func setDueTimes(_ moment: Timestamp, in store: any Store) async throws {
        try await run("UPDATE completion SET due_at = \(moment.milliseconds)", in: store)
    }

    package func dueTimes(in store: any Store) async throws -> [Timestamp] {
        try await numbers("SELECT due_at FROM completion WHERE due_at NOT NULL", in: store).map {
            Timestamp(milliseconds: $0)
        }
    }

    package func statesOfLeft(in store: any Store) async throws -> [Int] {
        try await numbers("SELECT state FROM completion WHERE has_left", in: store).map { Int($0) }
    }

    package func countCompletions(because reason: String, in store: any Store) async throws -> Int {
        try await count("completion", where: "reason = \(Self.literal(reason))", in: store)
    }

    package func reasonSizes(in store: any Store) async throws -> [Int] {
        try await numbers("SELECT coalesce(length(CAST(reason AS BLOB)), 0) FROM completion", in: store).map { Int($0) }
    }

    package func mostAttempts(in store: any Store) async throws -> Int {
        try await number("SELECT coalesce(max(attempt), 0) FROM completion", in: store)
    }

    // MARK: Forbidden states

    package func countDueAgain(in store: any Store) async throws -> Int {
        try await count("completion", where: "state = 0 AND attempt > 0 AND due_at NOT NULL", in: store)
    }

    package func countOrphanedEnvelopes(in store: any Store) async throws -> Int {
        try await count(
            "envelope",
            where: """
                origin_kind = \(Origin.Kind.update.rawValue) AND topic NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM completion
                        WHERE in_update = origin AND binding || '/' || entry = topic AND state = 0 AND due_at IS NULL)
                """, in: store)
    }

    package func countMissingCompletions(in store: any Store) async throws -> Int {
        try await number(
            """
            SELECT count(*) FROM binding JOIN audience_update AS published ON published.app = binding.app AND published.status = 0
                AND NOT is_resync AND published.serial <= binding.held_to
            WHERE ended_at IS NULL AND (audience IS NULL
                    OR audience = 'region == ''' || json_extract(CAST(binding.parameters AS TEXT), '$.region') || '''')
                AND NOT EXISTS (SELECT 1 FROM completion WHERE completion.binding = binding.serial
                    AND in_update = published.serial AND NOT (has_left AND (is_standing OR state = 15)))
            """, in: store)
    }
}
