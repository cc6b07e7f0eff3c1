import CarillonWire
import Metrics

/// The outgoing calls of watches: pings, and callbacks for channels that ended.
package struct WatchWork: WorkUser {
    private let watches: any WatchStore
    private let shards: @Sendable () -> ShardSet
    private let notifier: ChannelNotifier
    private let sealer: SecretSealer
    private let random: RandomSource

    /// - Parameter shards: Returns the present shards of the home.
    package init(
        watches: any WatchStore, shards: @escaping @Sendable () -> ShardSet = { .all }, notifier: ChannelNotifier,
        sealer: SecretSealer, random: RandomSource
    ) {
        self.watches = watches
        self.shards = shards
        self.notifier = notifier
        self.sealer = sealer
        self.random = random
    }

    package func beganAfterPause(at now: Timestamp) async throws {
        try await watches.spreadOverduePings(in: shards(), at: now)
    }

    package func lease(
        _ work: [DueWork], at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedItems<WatchSubject> {
        try await watches.leaseWork(work, at: now, until: end)
    }

    package func job(for item: LeasedCall) -> WorkJob<BackendCall> {
        let call: BackendCall? =
            switch item.subject {
            case .ping(let watch):
                watch.ping.flatMap {
                    self.call(WebhookID.make(random), $0.address, watch.sealed, watch.channel, .ping)
                }
            case .callback(let callback):
                self.call(
                    callback.webhookID, callback.address, callback.sealed, callback.channel,
                    .disconnected(callback.reason, at: callback.endedAt))
            }
        return call.map { .possible($0) }
            ?? .impossible(
                reason: "the watch's secret was encrypted with a key that no longer exists; register the watch again")
    }

    private func call(
        _ id: String, _ address: CallAddress, _ sealed: Watch.Sealed, _ channel: ChannelSerial,
        _ content: BackendCall.Content
    ) -> BackendCall? {
        guard let secret = sealer.open(sealed.secret, for: channel.rawValue),
            let token = sealer.open(sealed.token, for: channel.rawValue)
        else { return nil }
        return BackendCall(
            id: id, address: address, secret: SigningSecret(bytes: secret), token: String(decoding: token, as: UTF8.self),
            content: content)
    }

    package func ended(_ subject: WatchSubject, _ result: CallResult, _ end: WorkEnd) async throws {
        switch subject {
        case .ping(let watch): try await pinged(watch, end, result)
        case .callback(let callback): try await called(callback, end, result)
        }
    }

    private func pinged(_ watch: Watch, _ end: WorkEnd, _ result: CallResult) async throws {
        guard let ping = watch.ping else { return }
        var machine = watch.machine
        let step = machine.pinged(result, every: ping.intervalSeconds, at: end.at, chance: random.next())
        let record = PingRecord(
            end: end, watch: watch.serial, revision: watch.revision, machine: machine,
            lastPing: Watch.LastPing(result, at: end.at), dueAt: step.dueAt)
        if let change = step.change {
            _ = try await self.notifier.notify(change, on: watch, with: .pinged(record))
        } else {
            _ = try await watches.record(record)
        }
        ServerMetric.pings.counter(result.pingLabel).increment()
    }

    private func called(_ callback: DisconnectCallback, _ end: WorkEnd, _ result: CallResult) async throws {
        var callback = callback
        let step = callback.machine.called(result, endedAt: callback.endedAt, at: end.at, chance: random.next())
        _ = try await watches.record(step, of: callback, end: end)
        ServerMetric.disconnectCallbacks.counter(step.label).increment()
    }
}

/// One call to a backend.
package struct BackendCall: Sendable {
    package enum Content: Equatable, Sendable {
        case ping
        case disconnected(DisconnectReason, at: Timestamp)
    }

    package var id: String
    package var address: CallAddress
    package var secret: SigningSecret
    package var token: String
    package var content: Content
}

extension Watch.LastPing {
    fileprivate init?(_ result: CallResult, at now: Timestamp) {
        switch PingVerdict(result) {
        case .well: self.init(at: now, failure: nil, detail: nil)
        case .failed(let failure, let detail): self.init(at: now, failure: failure, detail: detail)
        case .none: return nil
        }
    }
}

extension CallResult {
    fileprivate var pingLabel: String {
        if case .impossible = self { return "lost" }
        return switch PingVerdict(self) {
        case .well: "answered"
        case .failed(let failure, _): String(failure.rawValue)
        case .none: "not_made"
        }
    }
}

extension CallbackMachine.Step {
    fileprivate var label: String {
        switch self {
        case .done: "delivered"
        case .retry: "retried"
        case .givenUp: "given_up"
        case .lost: "lost"
        }
    }
}
