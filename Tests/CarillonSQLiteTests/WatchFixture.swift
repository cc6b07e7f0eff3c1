import CarillonCore
import CarillonSQLite
import CarillonWire

/// A store with two open channels of one device, and the ways to watch them.
struct WatchFixture {
    static let start = StoreFixture.start
    static let aMonth = start.adding(seconds: 2_592_000)

    let base: StoreFixture
    var store: SQLiteStore { base.store }

    init(_ kind: StoreKind) async throws { base = try await StoreFixture(kind) }

    func wish(
        on channel: PushChannel? = nil, ping: String? = "http://example.com/ping", every seconds: Int = 60,
        due: Timestamp? = start, gone: String? = nil, secret: UInt8 = 1, id: String? = nil, renews: Bool = false
    ) throws -> WatchWish {
        let channel = channel ?? base.first
        return WatchWish(
            channel: channel.serial,
            ping: try ping.map { Watch.Ping(address: try CallAddress($0), intervalSeconds: seconds) },
            firstDueAt: ping == nil ? nil : due, disconnectAddress: try gone.map { try CallAddress($0) },
            sealed: Watch.Sealed(secret: [secret], token: [secret, 2]),
            callbackID: id ?? "msg_\(channel.serial.rawValue)", renewsSecret: renews)
    }

    func put(_ wish: WatchWish, at now: Timestamp = start) async throws -> PutWatchResult {
        guard let result = try await store.putWatch(wish, at: now) else { throw StoreFixture.Missing() }
        return result
    }

    func lease(at now: Timestamp, limit: Int = 100) async throws -> [LeasedCall] {
        try await store.leaseCalls(at: now, until: now.adding(seconds: 30), limit: limit)
    }

    /// What a leased ping found.
    func record(
        _ call: LeasedCall, told: PingFailure? = nil, due: Timestamp, code: PingFailure? = nil, at now: Timestamp = start
    ) throws -> PingRecord {
        guard case .ping(let watch) = call.work else { throw StoreFixture.Missing() }
        return PingRecord(
            lease: call.lease, watch: watch.serial, revision: watch.revision, machine: PingMachine(told: told),
            lastPing: Watch.LastPing(at: now, failure: code, detail: code.map { "code \($0.rawValue)" }), dueAt: due)
    }

    func news(_ position: Int64, _ kind: Envelope.Kind, on channel: PushChannel? = nil) -> Envelope {
        var envelope = base.envelope(position, on: channel)
        envelope.kind = kind
        envelope.expiresAt = .never
        return envelope
    }

    func tell(_ envelope: Envelope, _ change: WatchChange?) async throws -> InboxResult {
        try await store.commit([.append(envelope, AppendRules(topic: "watch:ping", watch: change))])[0]
    }
}

extension LeasedCall {
    var watch: Watch? { if case .ping(let watch) = work { watch } else { nil } }
    var callback: DisconnectCallback? { if case .callback(let callback) = work { callback } else { nil } }
}
