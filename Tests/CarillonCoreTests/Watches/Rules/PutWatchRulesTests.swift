import CarillonCore
import CarillonWire
import Testing

struct PutWatchRulesTests {
    private let now = Sample.now
    private let rules = WatchRules()

    private func facts(
        _ channel: WatchedChannel? = WatchSample.channel, _ watch: Watch? = nil, device: Int = 0, app: Int = 0
    ) -> PutWatchFacts {
        PutWatchFacts(channel: channel, watch: watch, counts: .init(ofDevice: device, ofApp: WatchUsage(watches: app)))
    }

    private func put(_ request: WatchRequest, _ facts: PutWatchFacts) throws -> (
        watch: Watch, isNew: Bool, changes: WatchChanges
    ) {
        let verdict = rules.put(request, at: now, knowing: facts)
        guard case .put(let watch, let isNew, let changes) = verdict else { throw Refused(verdict: verdict) }
        return (watch, isNew, changes)
    }

    private struct Refused: Error {
        var verdict: WatchRules.PutVerdict
    }

    @Test(arguments: [false, true])
    func `a channel that is closed, of a former user or of a deleted app accepts no watch`(isThere: Bool) throws {
        let request = try WatchSample.request()
        let watch = isThere ? try WatchSample.watch() : nil
        var (former, deleted) = (WatchSample.channel, WatchSample.channel)
        former.isOfFormerUser = true
        deleted.isAppDeleted = true
        for channel in [nil, former, deleted] {
            #expect(rules.put(request, at: now, knowing: facts(channel, watch)) == .refused(.channelGone))
        }
    }

    @Test func `only a new watch needs the counts`() throws {
        let request = try WatchSample.request(limits: WatchLimits(perDevice: 0, perApp: 0))
        let new = rules.put(request, at: now, knowing: PutWatchFacts(channel: WatchSample.channel))
        #expect(new == .needsCounts(Sample.device, WatchSample.app))
        let change = try put(request, PutWatchFacts(channel: WatchSample.channel, watch: try WatchSample.watch()))
        #expect(!change.isNew)
        #expect(change.changes.usage.isEmpty)
    }

    @Test func `the limits of a device and of an app are checked in this order`() throws {
        let request = try WatchSample.request(limits: WatchLimits(perDevice: 2, perApp: 5))
        _ = try put(request, facts(device: 1, app: 4))
        #expect(rules.put(request, at: now, knowing: facts(device: 2, app: 4)) == .refused(.tooManyOfDevice))
        #expect(rules.put(request, at: now, knowing: facts(device: 1, app: 5)) == .refused(.tooManyOfApp))
        #expect(rules.put(request, at: now, knowing: facts(device: 2, app: 5)) == .refused(.tooManyOfDevice))
    }

    @Test func `a new watch is as requested, and counted`() throws {
        let due = now.adding(seconds: 40)
        let (watch, isNew, changes) = try put(WatchSample.request(due: due, gone: "http://two.example"), facts())
        #expect(isNew)
        #expect(watch.revision == 1)
        #expect(watch.channel == WatchSample.channel.serial)
        #expect(watch.channelID == WatchSample.channel.id)
        #expect(watch.device == Sample.device)
        #expect(watch.app == WatchSample.app)
        #expect(watch.ping?.address.peer == "one.example:80")
        #expect(watch.disconnectAddress?.peer == "two.example:80")
        #expect(watch.sealed == Watch.Sealed(secret: [1], token: [2]))
        #expect(watch.machine == PingMachine())
        #expect(watch.lastPing == nil)
        #expect(watch.dueAt == due)
        #expect(watch.createdAt == now)
        #expect(changes.usage == [WatchSample.app: .added(WatchUsage(watches: 1))])
        let expected = WatchChanges.Put(
            watch: watch, isNew: true, callbackID: "msg_1", ping: .added(peer: "one.example:80", dueAt: due), at: now)
        #expect(changes.put == expected)
    }

    @Test func `a ping without a proposed moment is due at once`() throws {
        let watch = try put(WatchSample.request(due: nil), facts()).watch
        #expect(watch.dueAt == now)
        let silent = try put(WatchSample.request(ping: nil, gone: "http://two.example"), facts())
        #expect(silent.watch.dueAt == nil)
        #expect(silent.changes.put?.ping == WatchChanges.PingWork.none)
    }

    @Test func `a change keeps the secret unless a new one is requested`() throws {
        let earlier = try WatchSample.watch()
        let kept = try put(WatchSample.request(gone: "http://two.example"), facts(WatchSample.channel, earlier)).watch
        #expect(kept.serial == earlier.serial)
        #expect(kept.revision == earlier.revision + 1)
        #expect(kept.sealed == Watch.Sealed(secret: [8], token: [2]))
        #expect(kept.createdAt == earlier.createdAt)
        #expect(kept.disconnectAddress?.peer == "two.example:80")
        let renewed = try put(WatchSample.request(renews: true), facts(WatchSample.channel, earlier)).watch
        #expect(renewed.sealed == Watch.Sealed(secret: [1], token: [2]))
        #expect(renewed.disconnectAddress == nil)
    }

    @Test func `the state of an address stays with the address`() throws {
        let earlier = try WatchSample.watch()
        let same = try put(WatchSample.request(every: 90), facts(WatchSample.channel, earlier)).watch
        #expect(same.ping?.intervalSeconds == 90)
        #expect(same.machine == earlier.machine)
        #expect(same.lastPing == earlier.lastPing)
        for ping in ["http://one.example/other", nil] {
            let other = try put(WatchSample.request(ping: ping), facts(WatchSample.channel, earlier)).watch
            #expect(other.machine == PingMachine(notified: .noConnection))
            #expect(other.lastPing == nil)
        }
        let silent = try WatchSample.watch(ping: nil)
        let stillSilent = try put(WatchSample.request(ping: nil), facts(WatchSample.channel, silent)).watch
        #expect(stillSilent.machine == silent.machine)
        #expect(stillSilent.lastPing == silent.lastPing)
    }

    @Test func `a ping of the same address is not put off`() throws {
        let (soon, late) = (now.adding(seconds: 10), now.adding(seconds: 40))
        let cases: [(earlier: Timestamp, proposed: Timestamp, address: String, due: Timestamp)] = [
            (earlier: soon, proposed: late, address: "http://one.example/ping", due: soon),
            (earlier: late, proposed: soon, address: "http://one.example/ping", due: soon),
            (earlier: soon, proposed: late, address: "http://two.example", due: late),
        ]
        for (earlier, proposed, address, due) in cases {
            let changed = try put(
                WatchSample.request(ping: address, due: proposed),
                facts(WatchSample.channel, try WatchSample.watch(due: earlier)))
            #expect(changed.watch.dueAt == due)
            let peer = try #require(changed.watch.ping).address.peer
            #expect(changed.changes.put?.ping == .moved(peer: peer, dueAt: due))
        }
    }

    @Test func `the ping that is owed follows the ping address`() throws {
        let removed = try put(WatchSample.request(ping: nil), facts(WatchSample.channel, try WatchSample.watch()))
        #expect(removed.changes.put?.ping == .removed)
        #expect(removed.watch.dueAt == nil)
        let silent = try WatchSample.watch(ping: nil)
        let none = try put(WatchSample.request(ping: nil), facts(WatchSample.channel, silent))
        #expect(none.changes.put?.ping == WatchChanges.PingWork.none)
        let added = try put(WatchSample.request(), facts(WatchSample.channel, silent))
        #expect(added.changes.put?.ping == .added(peer: "one.example:80", dueAt: now))
    }

    @Test(arguments: [
        (WatchUsage(watches: 1), WatchChanges.Usage.emptied(WatchUsage(watches: -1))),
        (WatchUsage(watches: 2), .added(WatchUsage(watches: -1))),
        (WatchUsage(watches: 1, callbacks: 1), .added(WatchUsage(watches: -1))),
    ])
    func `the last removal empties the counts of the app`(usage: WatchUsage, change: WatchChanges.Usage) {
        var changes = WatchChanges()
        changes.usage = [WatchSample.app: change]
        #expect(rules.removedWatch(of: WatchSample.app, knowing: usage) == changes)
    }
}
