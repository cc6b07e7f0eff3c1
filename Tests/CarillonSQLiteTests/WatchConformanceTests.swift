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
        #expect(try await fixture.store.putWatch(fixture.wish(), at: start) == .channelGone)
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
        #expect(again.lease.call == lost.lease.call)
        #expect(again.lease.fence > lost.lease.fence)
        #expect(try await !fixture.store.record(fixture.record(lost, told: .noConnection, due: late.adding(seconds: 60))))
        #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.lastPing == nil)
        #expect(try await fixture.lease(at: late).isEmpty, "the present lease must stand")
        #expect(try await fixture.store.record(fixture.record(again, due: late.adding(seconds: 60))))
    }

    @Test(arguments: StoreKind.allCases)
    func `of each peer the call is given that has been due the longest`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let third = try await StoreFixture.open(3, of: fixture.base.device, in: fixture.store)
        _ = try await fixture.put(fixture.wish(ping: "http://one.example/a", due: start))
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: "https://ONE.example:80/b", due: start.adding(seconds: 1)))
        _ = try await fixture.put(fixture.wish(on: third, ping: "http://one.example:81/", due: start.adding(seconds: 2)))
        let now = start.adding(seconds: 5)
        let due = try await fixture.due(at: now)
        #expect(due.map(\.peer) == ["one.example:80", "one.example:81"])
        #expect(due.map(\.host) == ["one.example", "one.example"])
        #expect(due.map(\.readyAt) == [start, start.adding(seconds: 2)])
        #expect(due.allSatisfy { $0.isOnTrial && $0.kind == .ping && $0.app == fixture.base.device.app })
        #expect(due.allSatisfy { $0.device == fixture.base.device.serial && $0.servedAt < start })
        let calls = try await fixture.lease(at: now)
        #expect(calls.compactMap(\.watch?.channel) == [fixture.base.first.serial, third.serial])
        let next = try await fixture.due(at: now)
        #expect(next.map(\.peer) == ["one.example:80"])
        #expect(next.map(\.servedAt) == [now])
    }

    @Test(arguments: StoreKind.allCases)
    func `a watch that is put while it is called does not end the lease`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        _ = try await fixture.put(fixture.wish(due: start))
        #expect(try await fixture.lease(at: start).isEmpty)
        _ = try await fixture.put(fixture.wish(ping: "http://other.example", due: start))
        #expect(try await fixture.lease(at: start).isEmpty)
        // It was changed meanwhile: what was found out does not count, and it is pinged again.
        #expect(try await !fixture.store.record(fixture.record(call, told: .noConnection, due: WatchFixture.aMonth)))
        let watch = try #require(try await fixture.store.watch(of: fixture.base.first.serial))
        #expect(watch.machine.told == nil)
        #expect(watch.dueAt == start)
        #expect(try await fixture.lease(at: start).map(\.due.peer) == ["other.example:80"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what was leased meanwhile is not leased again`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.put(fixture.wish(on: fixture.base.second, ping: "http://two.example"))
        let due = try await fixture.due(at: start)
        #expect(due.count == 2)
        let end = start.adding(seconds: 30)
        #expect(try await fixture.store.leaseCalls([due[0]], at: start, until: end).calls.map(\.due) == [due[0]])
        #expect(try await fixture.store.removeWatch(of: fixture.base.second.serial))
        #expect(try await fixture.store.leaseCalls(due, at: start, until: end) == LeasedCalls(calls: [], unreadable: 0))
    }

    @Test(arguments: StoreKind.allCases)
    func `a call is answered for once`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        let record = try fixture.record(call, told: .noConnection, due: start.adding(seconds: 60))
        #expect(try await fixture.tell(fixture.news(1, .pingFailed(.noConnection)), .pinged(record)) != .originGone)
        // The first answer of the store was lost: the second one is no second envelope.
        #expect(try await fixture.tell(fixture.news(2, .pingFailed(.noConnection)), .pinged(record)) == .originGone)
        #expect(try await fixture.base.waiting().map(\.position) == [1])
        #expect(try await !fixture.store.record(record))
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
    func `no more is given than was asked for, the longest overdue first`(kind: StoreKind) async throws {
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
    }

    // MARK: Fairness

    @Test(arguments: StoreKind.allCases)
    func `who has a great deal due hides nobody behind it`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let (quiet, channel) = try await fixture.addDevice(2, app: "com.example.app")
        for number in 3...60 {
            let channel = try await StoreFixture.open(
                UInt64(number), of: fixture.base.device, in: fixture.store, limit: 100)
            _ = try await fixture.put(
                fixture.wish(
                    on: channel, ping: number < 30 ? "http://host\(number).example" : "http://many.example:\(number)"))
        }
        _ = try await fixture.put(fixture.wish(on: channel, ping: "http://quiet.example", due: start.adding(seconds: 9)))
        let now = start.adding(seconds: 10)
        #expect(try await !fixture.due(at: now, limit: 8).contains { $0.device == quiet.serial })
        var crowd = CallCrowd()
        crowd.devices = [fixture.base.device.serial]
        #expect(try await fixture.due(at: now, besides: crowd, limit: 1).map(\.peer) == ["quiet.example:80"])
        crowd = CallCrowd()
        crowd.hosts = ["many.example"]
        crowd.peers = Set((3..<30).map { "host\($0).example:80" })
        #expect(try await fixture.due(at: now, besides: crowd, limit: 1).map(\.peer) == ["quiet.example:80"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a peer that one device keeps busy is called for the others`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let (other, channel) = try await fixture.addDevice(2, app: "com.example.app")
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.put(fixture.wish(on: channel, due: start.adding(seconds: 1)))
        var crowd = CallCrowd()
        crowd.devices = [fixture.base.device.serial]
        let now = start.adding(seconds: 2)
        #expect(try await fixture.due(at: now).map(\.device) == [fixture.base.device.serial])
        #expect(try await fixture.due(at: now, besides: crowd).map(\.device) == [other.serial])
        crowd.devices.insert(other.serial)
        #expect(try await fixture.due(at: now, besides: crowd).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `each app, each kind and each standing has its own first calls`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let (_, foreign) = try await fixture.addDevice(2, app: "com.example.other")
        _ = try await fixture.put(fixture.wish(ping: "http://proven.example"))
        let call = try #require(try await fixture.lease(at: start).first)
        #expect(try await fixture.store.record(fixture.record(call, due: start.adding(seconds: 4))))
        for number in 3...9 {
            let channel = try await StoreFixture.open(UInt64(number), of: fixture.base.device, in: fixture.store)
            _ = try await fixture.put(
                fixture.wish(on: channel, ping: "http://a\(number).example", gone: "http://b\(number).example"))
            if number > 5 {
                _ = try await fixture.store.closeChannel(
                    channel.id, device: fixture.base.device.serial, at: start.adding(seconds: 5))
            }
        }
        _ = try await fixture.put(fixture.wish(on: foreign, ping: "http://c.example", due: start.adding(seconds: 6)))
        let due = try await fixture.due(at: start.adding(seconds: 7), limit: 1)
        #expect(due.map(\.peer) == ["a3.example:80", "proven.example:80", "b6.example:80", "c.example:80"])
        #expect(due.map(\.isOnTrial) == [true, false, true, true])
        #expect(due.map(\.kind) == [.ping, .ping, .callback, .ping])
    }

    @Test(arguments: StoreKind.allCases)
    func `what a call says of its peer is for all calls of the app to it, and for no other app`(
        kind: StoreKind
    ) async throws {
        let fixture = try await WatchFixture(kind)
        let (_, foreign) = try await fixture.addDevice(2, app: "com.example.other")
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: nil, gone: "http://example.com/gone"))
        _ = try await fixture.put(fixture.wish(on: foreign))
        let call = try #require(
            try await fixture.lease(at: start).first { $0.due.app == fixture.base.device.app })
        var record = try fixture.record(call, due: start.adding(seconds: 1))
        record.end.standing = PeerStanding(isOnTrial: true, failures: 5)
        record.end.peerRestsUntil = start.adding(seconds: 50)
        #expect(try await fixture.store.record(record))
        // The lane of callbacks is made after it.
        _ = try await fixture.store.closeChannel(
            fixture.base.second.id, device: fixture.base.device.serial, at: start.adding(seconds: 2))
        let resting = start.adding(milliseconds: 49_999)
        #expect(try await fixture.due(at: resting).map(\.app) == [foreign.app])
        let after = try await fixture.lease(at: start.adding(seconds: 50))
        #expect(after.count == 3)
        #expect(after.filter { $0.due.app != foreign.app }.map(\.standing.failures) == [5, 5])
        #expect(after.filter { $0.due.app == foreign.app }.map(\.standing.failures) == [0])
        // The next one answers.
        let again = try #require(after.first { $0.watch != nil && $0.due.app != foreign.app })
        #expect(try await fixture.store.record(fixture.record(again, due: start.adding(seconds: 51))))
        let well = try await fixture.due(at: start.adding(seconds: 99))
        #expect(well.filter { $0.app != foreign.app }.map(\.isOnTrial) == [false, false])
    }

    // MARK: Bounds

    @Test(arguments: StoreKind.allCases)
    func `a device, and an app, has so many watches and no more`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        let (_, other) = try await fixture.addDevice(2, app: "com.example.app")
        let third = try await StoreFixture.open(3, of: fixture.base.device, in: fixture.store)
        func put(_ channel: PushChannel, _ limits: WatchLimits) async throws -> PutWatchResult {
            var wish = try fixture.wish(on: channel)
            wish.limits = limits
            return try await fixture.store.putWatch(wish, at: start)
        }
        let limits = WatchLimits(perDevice: 2, perApp: 3)
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.put(fixture.wish(on: fixture.base.second, ping: nil, gone: "http://example.com"))
        #expect(try await put(third, limits) == .tooManyOfDevice)
        guard case .put(_, isNew: false) = try await put(fixture.base.first, limits) else { throw StoreFixture.Missing() }
        _ = try await fixture.put(fixture.wish(on: other))
        #expect(try await put(third, WatchLimits(perDevice: 9, perApp: 3)) == .tooManyOfApp)
        #expect(try await fixture.store.removeWatch(of: other.serial))
        guard case .put = try await put(third, WatchLimits(perDevice: 9, perApp: 3)) else { throw StoreFixture.Missing() }
        // Those that end with their channels are not counted either.
        _ = try await fixture.store.deleteDevice(fixture.base.device.serial, at: start)
        guard case .put(_, isNew: true) = try await put(other, WatchLimits(perDevice: 1, perApp: 1)) else {
            throw StoreFixture.Missing()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `of the callbacks that wait for one peer, and for one app, the oldest are given up`(
        kind: StoreKind
    ) async throws {
        let fixture = try await WatchFixture(kind, callbacks: CallbackLimits(perApp: 6, perPeer: 3))
        func end(_ number: Int, _ address: String) async throws {
            let channel = try await StoreFixture.open(UInt64(number), of: fixture.base.device, in: fixture.store)
            _ = try await fixture.put(fixture.wish(on: channel, ping: nil, gone: address, id: "msg_\(number)"))
            _ = try await fixture.store.closeChannel(
                channel.id, device: fixture.base.device.serial, at: start.adding(seconds: Int64(number)))
        }
        func waiting() async throws -> [String] {
            var names: [String] = []
            for call in try await fixture.drain(at: start.adding(seconds: 100)) {
                if let callback = call.callback { names.append(callback.webhookID) }
            }
            return names.sorted()
        }
        for number in 11...12 { try await end(number, "http://two.example") }
        for number in 13...17 { try await end(number, "http://one.example") }
        #expect(try await waiting() == ["msg_11", "msg_12", "msg_15", "msg_16", "msg_17"])
        // There is room again when they were answered.
        for number in 21...27 { try await end(number, "http://host\(number).example") }
        #expect(try await waiting() == (22...27).map { "msg_\($0)" })
    }

    @Test(arguments: StoreKind.allCases)
    func `a lane is there as long as a call stands in it`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        var record = try fixture.record(call, due: start)
        record.end.standing = PeerStanding(isOnTrial: true, failures: 9)
        #expect(try await fixture.store.record(record))
        for leave in 0..<3 {
            switch leave {
            case 0: _ = try await fixture.put(fixture.wish(ping: "http://other.example"))
            case 1: _ = try await fixture.put(fixture.wish(ping: nil, gone: "http://other.example"))
            default: #expect(try await fixture.store.removeWatch(of: fixture.base.first.serial))
            }
            _ = try await fixture.put(fixture.wish())
            #expect(
                try await fixture.lease(at: start.adding(seconds: Int64(60 * leave + 1))).map(\.standing.failures) == [0])
        }
    }

    // MARK: The clock

    @Test(arguments: StoreKind.allCases)
    func `after a clock that was ahead, each call waits as long from now on as it was to wait from then on`(
        kind: StoreKind
    ) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish(gone: "http://example.com/gone"))
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: "http://two.example", due: start.adding(seconds: 40)))
        let ahead = start.adding(seconds: 86_400)
        let calls = try await fixture.lease(at: ahead)
        #expect(calls.count == 2)
        var record = try fixture.record(calls[0], due: ahead.adding(seconds: 60), at: ahead)
        record.end.peerRestsUntil = ahead.adding(seconds: 10)
        #expect(try await fixture.store.record(record))
        let now = start.adding(seconds: 100)
        try await fixture.store.bringBackCalls(at: now, longestLease: 30)
        #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.dueAt == now.adding(seconds: 60))
        // The other one was leased, and is due again; its own time was set by a clock that was right.
        #expect(try await fixture.store.watch(of: fixture.base.second.serial)?.dueAt == start.adding(seconds: 40))
        #expect(try await fixture.due(at: now).map(\.peer) == ["two.example:80"])
        #expect(try await fixture.due(at: now).allSatisfy { $0.servedAt <= now })
        let later = now.adding(seconds: 60)
        #expect(try await fixture.due(at: later.adding(milliseconds: -1)).count == 1)
        #expect(try await fixture.due(at: later).count == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a clock that was right is left alone, and so are leases`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        _ = try await fixture.put(
            fixture.wish(on: fixture.base.second, ping: "http://two.example", due: WatchFixture.aMonth))
        #expect(try await fixture.lease(at: start).count == 1)
        try await fixture.store.bringBackCalls(at: start, longestLease: 30)
        #expect(try await fixture.due(at: start.adding(milliseconds: 29_999)).isEmpty)
        #expect(try await fixture.due(at: start.adding(seconds: 30)).count == 1)
        #expect(try await fixture.store.watch(of: fixture.base.second.serial)?.dueAt == WatchFixture.aMonth)
    }

    // MARK: Overdue

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
        #expect(try await fixture.tell(failed, .pinged(record)) == .originGone)
        #expect(try await fixture.tell(failed, .vouchedFor(fixture.base.first.serial)) == .originGone)
        #expect(try await fixture.tell(failed, nil) == .originGone)
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
        #expect(try await fixture.base.waiting().map(\.origin.key) == [.channel(fixture.base.second.serial)])
    }

    @Test(arguments: StoreKind.allCases)
    func `a back end that speaks for itself is believed, once`(kind: StoreKind) async throws {
        let fixture = try await WatchFixture(kind)
        _ = try await fixture.put(fixture.wish())
        let call = try #require(try await fixture.lease(at: start).first)
        let record = try fixture.record(call, told: .tokenLost, due: start.adding(seconds: 60))
        _ = try await fixture.tell(fixture.news(1, .pingFailed(.tokenLost)), .pinged(record))
        let change = Effect.vouchedFor(fixture.base.first.serial)
        #expect(try await fixture.tell(fixture.news(2, .recovered), change) != .originGone)
        #expect(try await fixture.tell(fixture.news(3, .recovered), change) == .originGone)
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
        case .appDeleted:
            _ = try await store.deleteApp(device.appID, at: now)
            while try await !store.continueDeletions(at: now, limit: 500).isDone {}
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
        #expect(try await fixture.store.record(.delivered, of: callback, end: fixture.end(call)))
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
        #expect(try await fixture.store.record(step, of: callback, end: fixture.end(call)))
        #expect(try await fixture.lease(at: next.adding(milliseconds: -1)).isEmpty)
        let again = try #require(try await fixture.lease(at: next).first)
        #expect(again.callback == callback)
        #expect(try await !fixture.store.record(.delivered, of: callback, end: fixture.end(call)), "the lease is another")
        #expect(try await fixture.store.record(.givenUp, of: callback, end: fixture.end(again)))
        #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
    }
}
