import CarillonWire
import Metrics
import Synchronization

/// Makes the rounds of the back ends: says which calls are to be made now, and writes down what became of each.
///
/// What is due, and who may call, is in the store, so that a restart neither loses a call nor makes all of them at once.
/// Here is only what is gone with the calls under way: whose they are, and what could not be written down yet.
package final class CallRounds: Sendable {
    /// One call that is to be made now.
    package struct Call: Sendable {
        package var id: String
        package var address: CallAddress
        package var secret: SigningSecret
        package var token: String
        package var content: Content
        package let begunAt: Timestamp
        let leased: LeasedCall
    }

    package enum Content: Equatable, Sendable {
        case ping
        case disconnected(DisconnectReason, at: Timestamp)
    }

    /// A call that ended at a moment.
    private struct Ended: Sendable {
        var leased: LeasedCall
        var result: CallResult
        var begunAt: Timestamp
        var at: Timestamp
        var leaseEnd: Timestamp { begunAt.adding(seconds: leaseSeconds) }
    }

    private struct State {
        var shares: CallShares
        var pace: CallPace
        /// What the store could not take. Until it can, the calls that it is about are not made again.
        var unwritten: [Ended] = []
        /// The latest moment of a round.
        var latest: Timestamp?
    }

    private let watches: any WatchStore
    private let news: ChannelNews
    private let sealer: SecretSealer
    private let time: TimeSource
    private let random: RandomSource
    private let state: Mutex<State>

    package init(
        watches: any WatchStore, news: ChannelNews, sealer: SecretSealer, limits: CallPace.Limits = .init(),
        time: TimeSource, random: RandomSource
    ) {
        self.watches = watches
        self.news = news
        self.sealer = sealer
        self.time = time
        self.random = random
        state = Mutex(State(shares: CallShares(slots: limits.underWay), pace: CallPace(limits: limits)))
    }

    /// Longer than any call may take.
    package static let leaseSeconds: Int64 = 30
    /// The oldest beyond it are dropped: their leases end, and the calls are made again.
    private static let mostUnwritten = 1024
    private static let writesAtOnce = 64
    /// How often the store is asked in one round, as those it names first may be all of one device.
    private static let looks = 3
    /// A clock that goes back by less puts nothing off for longer.
    private static let clockToleranceSeconds: Int64 = 10

    package var underWay: Int { state.withLock { $0.shares.underWay } }

    /// To be said once, before the first round.
    package func begin() async throws {
        let now = time.now()
        try await watches.bringBackCalls(at: now, longestLease: Self.leaseSeconds)
        try await watches.spreadOverduePings(at: now)
    }

    /// The calls that are to be made now, each to another peer. ``ended(_:_:)`` is to be said of each.
    package func due() async throws -> [Call] {
        let now = time.now()
        try await followClock(now)
        await writeUnwritten()
        var calls: [Call] = []
        for _ in 0..<Self.looks {
            do {
                let more = try await begin(at: now)
                calls += more.calls
                if more.isAll { break }
            } catch {
                // What was leased before is to be made all the same.
                guard !calls.isEmpty else { throw error }
                break
            }
        }
        return calls
    }

    /// - Throws: When the result could not be written. It is tried again at each round.
    package func ended(_ call: Call, _ result: CallResult) async throws {
        free(call.leased)
        try await finish(Ended(leased: call.leased, result: result, begunAt: call.begunAt, at: time.now()))
    }

    // MARK: Beginning

    private func begin(at now: Timestamp) async throws -> (calls: [Call], isAll: Bool) {
        let (room, crowds) = state.withLock { state in
            (
                state.pace.room(at: now),
                CallCrowds(
                    proven: state.shares.crowd(onTrial: false), onTrial: state.shares.crowd(onTrial: true))
            )
        }
        guard room > 0 else { return ([], true) }
        let due = try await watches.dueCalls(at: now, besides: crowds, limit: max(8, 2 * room))
        let (candidates, begun) = state.withLock { state in
            let answered = Set(state.unwritten.map(\.leased.due.serial))
            let candidates = due.filter { !answered.contains($0.serial) }
            let begun = state.shares.begin(candidates, room: room)
            state.pace.began(begun.count)
            return (candidates, begun)
        }
        guard !begun.isEmpty else { return ([], true) }
        let leased = try await lease(begun, at: now)
        var calls: [Call] = []
        for leased in leased {
            if let call = call(leased, begunAt: now) {
                calls.append(call)
            } else {
                free(leased)
                // That this one cannot be written down is no reason to forget the others, which are leased.
                try? await finish(
                    Ended(
                        leased: leased,
                        result: .impossible(
                            reason: "the watch's secret was sealed with a key that is gone; register it again"),
                        begunAt: now, at: now))
            }
        }
        return (calls, begun.count == room || begun.count == candidates.count)
    }

    private func lease(_ begun: [DueCall], at now: Timestamp) async throws -> [LeasedCall] {
        var notLeased = Dictionary(begun.map { ($0.serial, $0) }, uniquingKeysWith: { first, _ in first })
        defer {
            state.withLock { state in
                for call in notLeased.values {
                    state.shares.ended(call)
                    state.pace.ended()
                }
            }
        }
        let leased = try await watches.leaseCalls(begun, at: now, until: now.adding(seconds: Self.leaseSeconds))
        Self.unreadable.increment(by: leased.unreadable)
        for call in leased.calls { notLeased[call.due.serial] = nil }
        if !leased.calls.isEmpty { dropUnwritten(at: now) }
        return leased.calls
    }

    private func call(_ leased: LeasedCall, begunAt now: Timestamp) -> Call? {
        switch leased.work {
        case .ping(let watch):
            guard let ping = watch.ping else { return nil }
            return call(leased, WebhookID.make(random), ping.address, watch.sealed, watch.channel, .ping, now)
        case .callback(let callback):
            return call(
                leased, callback.webhookID, callback.address, callback.sealed, callback.channel,
                .disconnected(callback.reason, at: callback.endedAt), now)
        }
    }

    private func call(
        _ leased: LeasedCall, _ id: String, _ address: CallAddress, _ sealed: Watch.Sealed, _ channel: ChannelSerial,
        _ content: Content, _ now: Timestamp
    ) -> Call? {
        guard let secret = sealer.open(sealed.secret, for: channel), let token = sealer.open(sealed.token, for: channel)
        else { return nil }
        return Call(
            id: id, address: address, secret: SigningSecret(bytes: secret), token: String(decoding: token, as: UTF8.self),
            content: content, begunAt: now, leased: leased)
    }

    private func free(_ leased: LeasedCall) {
        state.withLock { state in
            state.shares.ended(leased.due)
            state.pace.ended()
        }
    }

    // MARK: Ending

    private func finish(_ ended: Ended) async throws {
        do {
            try await write(ended)
        } catch {
            keep(ended)
            throw error
        }
    }

    private func keep(_ ended: Ended) {
        let dropped = state.withLock { state in
            state.unwritten.append(ended)
            let surplus = max(0, state.unwritten.count - Self.mostUnwritten)
            state.unwritten.removeFirst(surplus)
            return surplus
        }
        Self.resultsDropped.increment(by: dropped)
    }

    /// A call that was answered is not repeated because the store was full for a while.
    private func writeUnwritten() async {
        let ended = state.withLock { state in
            let first = Array(state.unwritten.prefix(Self.writesAtOnce))
            state.unwritten.removeFirst(first.count)
            return first
        }
        // What fails again goes behind the others, and was told when it failed first.
        for ended in ended { try? await finish(ended) }
    }

    /// The store writes other things: what it still does not take after its lease it never will. The call is made again.
    private func dropUnwritten(at now: Timestamp) {
        let dropped = state.withLock { state in
            let before = state.unwritten.count
            state.unwritten.removeAll { $0.leaseEnd <= now }
            return before - state.unwritten.count
        }
        Self.resultsDropped.increment(by: dropped)
    }

    private static let resultsDropped = ServerMetric.callResultsDropped.counter()
    private static let unreadable = ServerMetric.callsUnreadable.counter()

    private func write(_ ended: Ended) async throws {
        var standing = ended.leased.standing
        let rests = standing.called(ended.result, begunAt: ended.begunAt, at: ended.at)
        let end = CallEnd(of: ended.leased, at: ended.at, standing: standing, peerRestsUntil: rests)
        switch ended.leased.work {
        case .ping(let watch): try await pinged(watch, end, ended.result)
        case .callback(let callback): try await called(callback, end, ended.result)
        }
    }

    private func pinged(_ watch: Watch, _ end: CallEnd, _ result: CallResult) async throws {
        guard let ping = watch.ping else { return }
        var machine = watch.machine
        let step = machine.pinged(result, every: ping.intervalSeconds, at: end.at, chance: random.next())
        let record = PingRecord(
            end: end, watch: watch.serial, revision: watch.revision, machine: machine,
            lastPing: Watch.LastPing(result, at: end.at), dueAt: step.dueAt)
        if let news = step.news {
            _ = try await self.news.tell(news, on: watch, with: .pinged(record))
        } else {
            _ = try await watches.record(record)
        }
        ServerMetric.pings.counter(result.pingLabel).increment()
    }

    private func called(_ callback: DisconnectCallback, _ end: CallEnd, _ result: CallResult) async throws {
        var callback = callback
        let step = callback.machine.called(result, endedAt: callback.endedAt, at: end.at, chance: random.next())
        _ = try await watches.record(step, of: callback, end: end)
        ServerMetric.disconnectCallbacks.counter(step.label).increment()
    }

    // MARK: The clock

    private func followClock(_ now: Timestamp) async throws {
        let latest = state.withLock { $0.latest }
        if let latest, now.adding(seconds: Self.clockToleranceSeconds) < latest {
            try await watches.bringBackCalls(at: now, longestLease: Self.leaseSeconds)
            state.withLock { $0.latest = now }
        } else {
            state.withLock { $0.latest = max(now, latest ?? now) }
        }
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
        case .delivered: "delivered"
        case .retry: "retried"
        case .givenUp: "given_up"
        case .lost: "lost"
        }
    }
}
