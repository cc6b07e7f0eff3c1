import CarillonCore
import CarillonSQLite
import CarillonWire
import Testing

@Suite(.timeLimit(.minutes(2)))
struct WatchConformanceTests {
    private let start = WatchFixture.start

    // MARK: The watch

    @Test(arguments: StoreKind.allCases)
    func `a watch is kept as it was put`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        #expect(try await fixture.store.watch(of: fixture.base.first.serial) == nil)
        let made = try await fixture.put(fixture.wish(every: 90, gone: "https://example.com/gone?a=b"))
        #expect(made.isNew)
        let watch = made.watch
        #expect(watch.ping?.address.text == "http://example.com/ping")
        #expect(watch.ping?.intervalSeconds == 90)
        #expect(watch.disconnectAddress?.text == "https://example.com/gone?a=b")
        #expect(watch.sealed == Watch.Sealed(secret: [1], token: [1, 2]))
        #expect(watch.channel == fixture.base.first.serial)
        #expect(watch.device == fixture.base.device.serial)
        #expect(watch.channelID == fixture.base.first.id)
        #expect(watch.dueAt == start)
        #expect(watch.lastPing == nil)
        #expect(try await fixture.store.watch(of: fixture.base.first.serial) == watch)
        #expect(try await fixture.store.watch(of: fixture.base.second.serial) == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `another put changes all but the secret, which changes when that is asked for`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let first = try await fixture.put(fixture.wish()).watch
        let later = start.adding(seconds: 9)
        let second = try await fixture.put(
            fixture.wish(ping: nil, gone: "http://example.com/gone", secret: 2), at: later)
        #expect(!second.isNew)
        #expect(second.watch.serial == first.serial)
        #expect(second.watch.revision > first.revision)
        #expect(second.watch.ping == nil)
        #expect(second.watch.dueAt == nil)
        #expect(second.watch.sealed == Watch.Sealed(secret: [1], token: [2, 2]))
        #expect(second.watch.createdAt == start)
        let third = try await fixture.put(fixture.wish(secret: 3, renews: true))
        #expect(third.watch.sealed.secret == [3])
        #expect(third.watch.disconnectAddress == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `putting again and again does not put a ping off`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish(due: start.adding(seconds: 10)))
        let again = try await fixture.put(fixture.wish(due: start.adding(seconds: 40)))
        #expect(again.watch.dueAt == start.adding(seconds: 10))
        let elsewhere = try await fixture.put(fixture.wish(ping: "http://other.example", due: start.adding(seconds: 40)))
        #expect(elsewhere.watch.dueAt == start.adding(seconds: 40))
    }

    @Test(arguments: StoreKind.allCases)
    func `a closed channel cannot be watched, and takes its watch with it`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.store.closeChannel(fixture.base.first.id, device: fixture.base.device.serial, at: start)
        #expect(try await fixture.store.watch(of: fixture.base.first.serial) == nil)
        #expect(try await fixture.store.putWatch(fixture.wish(), at: start) == nil)
        #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a removed watch is pinged no more, and one that is made anew is another`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let first = try await fixture.put(fixture.wish()).watch
        #expect(try await fixture.store.removeWatch(of: first.channel))
        #expect(try await !fixture.store.removeWatch(of: first.channel))
        #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
        let second = try await fixture.put(fixture.wish(secret: 5))
        #expect(second.isNew)
        #expect(second.watch.serial != first.serial)
        #expect(second.watch.sealed.secret == [5])
    }

    // MARK: Pings that are due

    @Test(arguments: StoreKind.allCases)
    func `a ping is due from its moment on, and leased once`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let due = start.adding(seconds: 10)
        _ = try await fixture.put(fixture.wish(due: due))
        #expect(try await fixture.lease(at: due.adding(milliseconds: -1)).isEmpty)
        let calls = try await fixture.lease(at: due)
        #expect(calls.compactMap(\.watch).map(\.channel) == [fixture.base.first.serial])
        #expect(try await fixture.lease(at: due.adding(seconds: 29)).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a lease that nobody answers for ends, and fences off who had it`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let lost = try #require(try await fixture.lease(at: start).first)
        let late = start.adding(seconds: 30)
        let again = try #require(try await fixture.lease(at: late).first)
        #expect(again.lease.peer == lost.lease.peer)
        #expect(again.lease.fence > lost.lease.fence)
        #expect(try await !fixture.store.record(fixture.record(lost, told: .noConnection, due: late.adding(seconds: 60))))
        #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.lastPing == nil)
        #expect(try await fixture.lease(at: late).isEmpty, "the present lease must stand")
        #expect(try await fixture.store.record(fixture.record(again, due: late.adding(seconds: 60))))
    }

    @Test(arguments: StoreKind.allCases)
    func `one call at a time goes to a peer, and other peers do not wait for it`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let third = try await StoreFixture.open(3, of: fixture.base.device, in: fixture.store)
        _ = try await fixture.put(fixture.wish(ping: "http://one.example/a", due: start))
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: "https://ONE.example:80/b", due: start.adding(seconds: 1)))
        _ = try await fixture.put(fixture.wish(on: third, ping: "http://one.example:81/", due: start.adding(seconds: 2)))
        let now = start.adding(seconds: 5)
        let calls = try await fixture.lease(at: now)
        #expect(calls.compactMap(\.watch?.channel) == [fixture.base.first.serial, third.serial])
        #expect(try await fixture.store.record(fixture.record(calls[0], due: now.adding(seconds: 60))))
        let next = try await fixture.lease(at: now)
        #expect(next.compactMap(\.watch?.channel) == [fixture.base.second.serial])
    }

    @Test(arguments: StoreKind.allCases)
    func `a watch that is put while its peer is called does not end the lease`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        _ = try await fixture.put(fixture.wish(on: fixture.base.second, due: start))
        _ = try await fixture.put(fixture.wish(due: start))
        #expect(try await fixture.lease(at: start).isEmpty)
        // The first was changed meanwhile: what was found out does not count, and it is pinged again.
        #expect(try await !fixture.store.record(fixture.record(call, told: .noConnection, due: WatchFixture.aMonth)))
        let watch = try #require(try await fixture.store.watch(of: fixture.base.first.serial))
        #expect(watch.machine.told == nil)
        #expect(watch.dueAt == start)
        #expect(try await fixture.lease(at: start).count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `what a ping found is kept`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        let due = start.adding(seconds: 60)
        #expect(try await fixture.store.record(fixture.record(call, told: .tokenLost, due: due, code: .tokenLost)))
        let watch = try #require(try await fixture.store.watch(of: fixture.base.first.serial))
        #expect(watch.machine.told == .tokenLost)
        #expect(watch.lastPing == Watch.LastPing(at: start, failure: .tokenLost, detail: "code 605"))
        #expect(watch.dueAt == due)
        #expect(try await fixture.lease(at: due.adding(milliseconds: -1)).isEmpty)
        #expect(try await fixture.lease(at: due).count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `what a ping found is of its address, and what the channel believes is not`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        _ = try await fixture.store.record(
            fixture.record(call, told: .tokenLost, due: start.adding(seconds: 60), code: .tokenLost))
        let same = try await fixture.put(fixture.wish(every: 90)).watch
        #expect(same.lastPing?.failure == .tokenLost)
        let other = try await fixture.put(fixture.wish(ping: "http://other.example")).watch
        #expect(other.lastPing == nil)
        #expect(other.machine.told == .tokenLost)
    }

    @Test(arguments: StoreKind.allCases)
    func `no more is leased than was asked for, the longest overdue first`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        for number in 3...8 {
            let channel = try await StoreFixture.open(UInt64(number), of: fixture.base.device, in: fixture.store)
            _ = try await fixture.put(
                fixture.wish(
                    on: channel, ping: "http://host\(number).example", due: start.adding(seconds: Int64(20 - number))))
        }
        let calls = try await fixture.lease(at: start.adding(seconds: 60), limit: 4)
        #expect(calls.compactMap { $0.watch?.ping?.address.peer } == (5...8).reversed().map { "host\($0).example:80" })
        #expect(try await fixture.lease(at: start.adding(seconds: 60), limit: 4).count == 2)
        #expect(try await fixture.lease(at: start.adding(seconds: 60), limit: 0).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `what became overdue is spread over the time of a first ping, and stays due`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish(every: 60))
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: "http://other.example", due: WatchFixture.aMonth))
        let now = start.adding(seconds: 86_400)
        try await fixture.store.spreadOverduePings(at: now)
        let due = try #require(try await fixture.store.watch(of: fixture.base.first.serial)?.dueAt)
        #expect((now..<now.adding(seconds: 60)).contains(due))
        #expect(try await fixture.store.watch(of: fixture.base.second.serial)?.dueAt == WatchFixture.aMonth)
        #expect(try await fixture.lease(at: due).count == 1)
    }

    // MARK: News

    @Test(arguments: StoreKind.allCases)
    func `news is written in one with what it tells of, and takes the place of news that waits`(
        kind: StoreKind
    ) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let first = try #require(try await fixture.lease(at: start).first)
        let failed = fixture.news(1, .pingFailed(.noConnection))
        let due = start.adding(seconds: 60)
        #expect(
            try await fixture.tell(failed, .pinged(fixture.record(first, told: .noConnection, due: due)))
                == .stored(replaced: nil))
        #expect(try await fixture.base.waiting() == [failed])
        #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.machine.told == .noConnection)

        let message = fixture.base.envelope(2)
        _ = try await fixture.base.append(message)
        let second = try #require(try await fixture.lease(at: due).first)
        let recovered = fixture.news(3, .recovered)
        #expect(
            try await fixture.tell(recovered, .pinged(fixture.record(second, due: due.adding(seconds: 60))))
                == .stored(replaced: failed.id))
        #expect(try await fixture.base.waiting() == [message, recovered])
        #expect(try await fixture.store.waitingCount(device: fixture.base.device.serial, at: start) == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `news that does not count any more is not told`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        let record = try fixture.record(call, told: .noConnection, due: start.adding(seconds: 60))
        _ = try await fixture.put(fixture.wish())
        let failed = fixture.news(1, .pingFailed(.noConnection))
        #expect(try await fixture.tell(failed, .pinged(record)) == .channelGone)
        #expect(try await fixture.tell(failed, .vouchedFor(fixture.base.first.serial)) == .channelGone)
        #expect(try await fixture.tell(failed, nil) == .channelGone)
        #expect(try await fixture.base.waiting().isEmpty)
        #expect(try await fixture.lease(at: start).count == 1, "the lease has ended all the same")
    }

    @Test(arguments: StoreKind.allCases)
    func `news of one channel leaves another's alone, and ends with its channel`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish(ping: "http://one.example"))
        _ = try await fixture.put(fixture.wish(on: fixture.base.second, ping: "http://two.example"))
        for (index, call) in try await fixture.lease(at: start).enumerated() {
            let channel = call.watch?.channel == fixture.base.first.serial ? fixture.base.first : fixture.base.second
            let record = try fixture.record(call, told: .noConnection, due: start.adding(seconds: 60))
            _ = try await fixture.tell(
                fixture.news(Int64(index + 1), .pingFailed(.noConnection), on: channel), .pinged(record))
        }
        #expect(try await fixture.base.waiting().count == 2)
        _ = try await fixture.store.closeChannel(fixture.base.first.id, device: fixture.base.device.serial, at: start)
        #expect(try await fixture.base.waiting().map(\.channel) == [fixture.base.second.serial])
    }

    @Test(arguments: StoreKind.allCases)
    func `a back end that speaks for itself is believed, once`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        let record = try fixture.record(call, told: .tokenLost, due: start.adding(seconds: 60))
        _ = try await fixture.tell(fixture.news(1, .pingFailed(.tokenLost)), .pinged(record))
        let change = WatchChange.vouchedFor(fixture.base.first.serial)
        #expect(try await fixture.tell(fixture.news(2, .recovered), change) != .channelGone)
        #expect(try await fixture.tell(fixture.news(3, .recovered), change) == .channelGone)
        #expect(try await fixture.base.waiting().map(\.kind) == [.recovered])
    }

    @Test(arguments: StoreKind.allCases)
    func `news that was delivered or replaced is not kept`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        var told: PingFailure? = .noConnection
        for position in 1...20 {
            let now = start.adding(seconds: Int64(position) * 60)
            let call = try #require(try await fixture.lease(at: now).first)
            let record = try fixture.record(call, told: told, due: now)
            _ = try await fixture.tell(
                fixture.news(Int64(position), told.map { .pingFailed($0) } ?? .recovered), .pinged(record))
            told = told == nil ? .noConnection : nil
        }
        let last = try #require(try await fixture.base.waiting().first)
        let settlement = Settlement(.acknowledged, code: 100, at: start)
        let settle = InboxOperation.settle(last.id, device: fixture.base.device.serial, settlement)
        #expect(try await fixture.store.commit([settle, settle]) == [.settled, .notWaiting])
        #expect(try await fixture.base.waiting().isEmpty)
        #expect(try await fixture.store.lastPosition() == 0)
    }

    // MARK: Callbacks

    enum Ending: CaseIterable, Sendable {
        case unregistered, revoked, failed, deviceDeleted, appDeleted

        var reason: DisconnectReason {
            switch self {
            case .unregistered: .unregistered
            case .revoked, .failed: .revoked
            case .deviceDeleted: .deviceDeleted
            case .appDeleted: .appDeleted
            }
        }
    }

    private func end(_ ending: Ending, _ fixture: WatchFixture, at now: Timestamp) async throws {
        let (store, channel, device) = (fixture.store, fixture.base.first, fixture.base.device)
        switch ending {
        case .unregistered: _ = try await store.closeChannel(channel.id, device: device.serial, at: now)
        case .revoked, .failed:
            var event = fixture.news(9, ending == .revoked ? .channelClosed : .channelError(code: 503))
            event.acceptedAt = now
            _ = try await store.commit([.append(event, AppendRules())])
        case .deviceDeleted: _ = try await store.deleteDevice(device.serial, at: now)
        case .appDeleted: _ = try await store.deleteApp(device.appID, at: now)
        }
    }

    @Test(arguments: StoreKind.allCases, Ending.allCases)
    func `the end of a watched channel is called back once, whatever ended it`(
        kind: StoreKind, ending: Ending
    ) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish(gone: "http://example.com/gone", secret: 4, id: "msg_x"))
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: "http://other.example", due: WatchFixture.aMonth))
        let now = start.adding(seconds: 5)
        try await end(ending, fixture, at: now)
        try await end(ending, fixture, at: now.adding(seconds: 1))
        let call = try #require(try await fixture.lease(at: now).first)
        let callback = try #require(call.callback)
        #expect(callback.reason == ending.reason)
        #expect(callback.endedAt == now)
        #expect(callback.webhookID == "msg_x")
        #expect(callback.address.text == "http://example.com/gone")
        #expect(callback.sealed == Watch.Sealed(secret: [4], token: [4, 2]))
        #expect(callback.channel == fixture.base.first.serial)
        #expect(try await fixture.lease(at: now).isEmpty)
        #expect(try await fixture.store.record(.delivered, of: callback, lease: call.lease))
        let left = try await fixture.lease(at: WatchFixture.aMonth).compactMap(\.callback)
        #expect(left.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `without a disconnect address nobody is called back`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.put(fixture.wish(on: fixture.base.second, gone: "http://example.com/gone"))
        #expect(try await fixture.store.removeWatch(of: fixture.base.second.serial))
        _ = try await fixture.store.deleteDevice(fixture.base.device.serial, at: start)
        #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `a callback that failed comes again at its time, under the same name, and is forgotten when given up`(
        kind: StoreKind
    ) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish(ping: nil, gone: "http://example.com/gone"))
        try await end(.unregistered, fixture, at: start)
        let call = try #require(try await fixture.lease(at: start).first)
        var callback = try #require(call.callback)
        let step = callback.machine.called(.answered(status: 500), endedAt: start, at: start, chance: 0)
        guard case .retry(let next) = step else { throw StoreFixture.Missing() }
        #expect(try await fixture.store.record(step, of: callback, lease: call.lease))
        #expect(try await fixture.lease(at: next.adding(milliseconds: -1)).isEmpty)
        let again = try #require(try await fixture.lease(at: next).first)
        #expect(again.callback == callback)
        #expect(try await !fixture.store.record(.delivered, of: callback, lease: call.lease), "the lease is another")
        #expect(try await fixture.store.record(.givenUp, of: callback, lease: again.lease))
        #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
    }
}
