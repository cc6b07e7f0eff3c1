package import CarillonCore
package import CarillonWire
package import TestStores

/// A store with two open channels of one device, and the ways to watch them.
package struct WatchFixture {
    package static let start = StoreFixture.start
    package static let aMonth = start.adding(seconds: 2_592_000)

    package let base: StoreFixture
    package var store: any Store { base.store }

    package init(_ stores: any StoreMaker, callbacks: CallbackLimits = .init()) async throws {
        base = try await StoreFixture(stores.open(StoreSettings(callbacks: callbacks)))
    }

    package init(_ store: any Store) async throws { base = try await StoreFixture(store) }

    /// Another device, with an open channel.
    package func addDevice(_ number: UInt64, app: String) async throws -> (device: Device, channel: PushChannel) {
        guard let app = AppID(app) else { throw StoreFixture.Missing() }
        _ = try await store.createApp(app, at: Self.start)
        guard
            let device = try await base.insert(
                NewDevice(DeviceID(Bytes16(high: 2, low: number)), app: app),
                secret: [2, UInt8(number >> 8), UInt8(number % 256)])
        else { throw StoreFixture.Missing() }
        return (device, try await StoreFixture.open(1, of: device, in: store))
    }

    /// Calls until nothing is due. Each callback is done; a ping is repeated in a month.
    package func drain(at now: Timestamp) async throws -> [LeasedCall] {
        var all: [LeasedCall] = []
        while case let calls = try await lease(at: now), !calls.isEmpty {
            for call in calls {
                if let callback = call.callback {
                    _ = try await store.record(.done, of: callback, end: end(call, at: now))
                } else {
                    _ = try await store.record(record(call, due: Self.aMonth, at: now))
                }
            }
            all += calls
        }
        return all
    }

    package func request(
        on channel: PushChannel? = nil, ping: String? = "http://example.com/ping", every seconds: Int = 60,
        due: Timestamp? = start, gone: String? = nil, secret: UInt8 = 1, id: String? = nil, renews: Bool = false
    ) throws -> WatchRequest {
        let channel = channel ?? base.first
        return WatchRequest(
            channel: channel.serial,
            ping: try ping.map { Watch.Ping(address: try CallAddress($0), intervalSeconds: seconds) },
            firstDueAt: ping == nil ? nil : due, disconnectAddress: try gone.map { try CallAddress($0) },
            sealed: Watch.Sealed(secret: [secret], token: [secret, 2]),
            callbackID: id ?? "msg_\(channel.serial.rawValue)", renewsSecret: renews)
    }

    package func put(_ request: WatchRequest, at now: Timestamp = start) async throws -> Put {
        guard case .put(let watch, let isNew) = try await store.putWatch(request, at: now) else {
            throw StoreFixture.Missing()
        }
        return Put(watch: watch, isNew: isNew)
    }

    package struct Put {
        var watch: Watch
        var isNew: Bool
    }

    /// All due work, the longest due first.
    package func due(
        at now: Timestamp, besides crowd: BusyPeers = BusyPeers(), limit: Int = 100
    ) async throws -> [DueWork] {
        try await store.dueWork(at: now, besides: BusyPeerSets(proven: crowd, onTrial: crowd), limit: limit)
            .sorted { ($0.readyAt, $0.serial) < ($1.readyAt, $1.serial) }
    }

    /// Leases the due work, except for peers with a pending call.
    package func lease(at now: Timestamp, besides crowd: BusyPeers = BusyPeers(), limit: Int = 100) async throws
        -> [LeasedCall]
    {
        let due = try await due(at: now, besides: crowd, limit: limit)
        return try await store.leaseWork(due, at: now, until: now.adding(seconds: 30)).items
    }

    /// The end of a lease, of a peer that answered.
    package func end(_ call: LeasedCall, at now: Timestamp = start) -> WorkEnd {
        WorkEnd(of: call, at: now, health: EndpointHealth(isOnTrial: false), peerRestsUntil: now)
    }

    /// The result of a leased ping.
    package func record(
        _ call: LeasedCall, notified: PingFailure? = nil, due: Timestamp, code: PingFailure? = nil, at now: Timestamp = start
    ) throws -> PingRecord {
        guard case .ping(let watch) = call.subject else { throw StoreFixture.Missing() }
        return PingRecord(
            end: end(call, at: now), watch: watch.serial, revision: watch.revision, machine: PingMachine(notified: notified),
            lastPing: Watch.LastPing(at: now, failure: code, detail: code.map { "code \($0.rawValue)" }), dueAt: due)
    }

    package func news(_ position: Int64, _ kind: Envelope.Kind, on channel: PushChannel? = nil) -> Envelope {
        var envelope = base.envelope(position, on: channel)
        envelope.kind = kind
        envelope.expiresAt = .never
        return envelope
    }

    package func notify(_ envelope: Envelope, _ change: Effect?) async throws -> InboxResult {
        try await store.commit([.append(envelope, AppendRules(topic: "watch:ping", effects: change.map { [$0] } ?? []))])[0]
    }
}

extension LeasedCall {
    package var watch: Watch? { if case .ping(let watch) = subject { watch } else { nil } }
    package var callback: DisconnectCallback? { if case .callback(let callback) = subject { callback } else { nil } }
}
