import CarillonWire
import Metrics

/// Makes the rounds of the back ends: says which calls are to be made now, and writes down what became of each.
///
/// It holds nothing that matters: what is due, and who may call, is in the store, so that a restart neither loses a
/// call nor makes all of them at once.
package struct CallRounds: Sendable {
    /// One call that is to be made now.
    package struct Call: Sendable {
        package var id: String
        package var address: CallAddress
        package var secret: SigningSecret
        package var token: String
        package var content: Content
        let leased: LeasedCall
    }

    package enum Content: Equatable, Sendable {
        case ping
        case disconnected(DisconnectReason, at: Timestamp)
    }

    private let watches: any WatchStore
    private let news: ChannelNews
    private let sealer: SecretSealer
    private let time: TimeSource
    private let random: RandomSource

    package init(
        watches: any WatchStore, news: ChannelNews, sealer: SecretSealer, time: TimeSource, random: RandomSource
    ) {
        self.watches = watches
        self.news = news
        self.sealer = sealer
        self.time = time
        self.random = random
    }

    /// Longer than any call may take.
    package static let leaseSeconds: Int64 = 30

    /// To be said once, before the first round.
    package func begin() async throws { try await watches.spreadOverduePings(at: time.now()) }

    /// At most so many calls that are due, each to another peer. ``ended(_:_:)`` is to be said of each.
    package func due(limit: Int) async throws -> [Call] {
        let now = time.now()
        let leased = try await watches.leaseCalls(at: now, until: now.adding(seconds: Self.leaseSeconds), limit: limit)
        var calls: [Call] = []
        for leased in leased {
            if let call = call(leased) {
                calls.append(call)
            } else {
                try await finish(leased, .notMade(reason: "its secret was sealed with a key that is gone"))
            }
        }
        return calls
    }

    package func ended(_ call: Call, _ result: CallResult) async throws { try await finish(call.leased, result) }

    private func call(_ leased: LeasedCall) -> Call? {
        switch leased.work {
        case .ping(let watch):
            guard let ping = watch.ping else { return nil }
            return call(
                leased, WebhookID.make(random), ping.address, watch.sealed, watch.channel, .ping)
        case .callback(let callback):
            return call(
                leased, callback.webhookID, callback.address, callback.sealed, callback.channel,
                .disconnected(callback.reason, at: callback.endedAt))
        }
    }

    private func call(
        _ leased: LeasedCall, _ id: String, _ address: CallAddress, _ sealed: Watch.Sealed, _ channel: ChannelSerial,
        _ content: Content
    ) -> Call? {
        guard let secret = sealer.open(sealed.secret, for: channel), let token = sealer.open(sealed.token, for: channel)
        else { return nil }
        return Call(
            id: id, address: address, secret: SigningSecret(bytes: secret), token: String(decoding: token, as: UTF8.self),
            content: content, leased: leased)
    }

    private func finish(_ leased: LeasedCall, _ result: CallResult) async throws {
        switch leased.work {
        case .ping(let watch): try await pinged(watch, leased.lease, result)
        case .callback(let callback): try await called(callback, leased.lease, result)
        }
    }

    private func pinged(_ watch: Watch, _ lease: CallLease, _ result: CallResult) async throws {
        guard let ping = watch.ping else { return }
        let now = time.now()
        var machine = watch.machine
        let step = machine.pinged(result, every: ping.intervalSeconds, at: now, chance: random.next())
        let record = PingRecord(
            lease: lease, watch: watch.serial, revision: watch.revision, machine: machine,
            lastPing: Watch.LastPing(result, at: now), dueAt: step.dueAt)
        Counter(label: "carillon_pings", dimensions: [("result", result.pingLabel)]).increment()
        if let news = step.news {
            _ = try await self.news.tell(news, on: watch, with: .pinged(record))
        } else {
            _ = try await watches.record(record)
        }
    }

    private func called(_ callback: DisconnectCallback, _ lease: CallLease, _ result: CallResult) async throws {
        var callback = callback
        let step = callback.machine.called(
            result, endedAt: callback.endedAt, at: time.now(), chance: random.next())
        Counter(label: "carillon_disconnect_callbacks", dimensions: [("result", step.label)]).increment()
        _ = try await watches.record(step, of: callback, lease: lease)
    }
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
        switch PingVerdict(self) {
        case .well: "answered"
        case .failed(let failure, _): String(failure.rawValue)
        case .none: "not_made"
        }
    }
}

extension CallbackMachine.Step {
    fileprivate var label: String {
        switch self {
        case .delivered: "delivered"
        case .retry: "retried"
        case .givenUp: "given_up"
        }
    }
}
