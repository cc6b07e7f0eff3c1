import CarillonCore
import CarillonWire
import Testing

struct ChannelEndRulesTests {
    private let now = Sample.now
    private let rules = WatchRules()
    private let one = CallbackQueue(WatchSample.app, "one.example:80")
    private let two = CallbackQueue(WatchSample.app, "two.example:80")

    private func verdict(_ facts: ChannelEndFacts, perApp: Int = 100, perPeer: Int = 100) -> WatchRules.EndVerdict {
        rules.channelsEnd(
            because: .revoked, at: now, limits: CallbackLimits(perApp: perApp, perPeer: perPeer), knowing: facts)
    }

    private func decided(_ facts: ChannelEndFacts, perApp: Int = 100, perPeer: Int = 100) throws -> WatchChanges {
        guard case .decided(let changes) = verdict(facts, perApp: perApp, perPeer: perPeer) else { throw Undecided() }
        return changes
    }

    private struct Undecided: Error {}

    /// The facts of watches whose callbacks have these hosts.
    private func facts(
        _ hosts: [String?], waiting: [CallbackQueue: Int], usage: WatchUsage = WatchUsage(watches: 9, callbacks: 9)
    ) -> ChannelEndFacts {
        var facts = ChannelEndFacts()
        facts.watches = hosts.enumerated().map { WatchSample.ending(Int64($0.offset + 1), $0.element) }
        facts.usage = [WatchSample.app: usage]
        facts.waiting = waiting
        return facts
    }

    @Test func `channels without watches change nothing`() {
        #expect(verdict(ChannelEndFacts()) == .decided(WatchChanges()))
    }

    @Test func `a watch without a disconnect address leaves no callback`() throws {
        let changes = try decided(facts([nil, nil], waiting: [:], usage: WatchUsage(watches: 3)))
        #expect(changes.removedWatches == [WatchSerial(1), WatchSerial(2)])
        #expect(changes.callbacks.isEmpty)
        #expect(changes.usage == [WatchSample.app: .added(WatchUsage(watches: -2))])
        let last = try decided(facts([nil, nil], waiting: [:], usage: WatchUsage(watches: 2)))
        #expect(last.usage == [WatchSample.app: .emptied(WatchUsage(watches: -2))])
    }

    @Test func `watches that were not counted leave counts of their callbacks`() throws {
        let changes = try decided(facts(["one.example"], waiting: [one: 0], usage: WatchUsage()))
        #expect(changes.usage == [WatchSample.app: .added(WatchUsage(callbacks: 1))])
    }

    @Test func `callbacks enter in the order of their channels`() throws {
        var facts = facts(["one.example", nil, "two.example"], waiting: [one: 0, two: 0], usage: WatchUsage(watches: 3))
        facts.watches.reverse()
        let changes = try decided(facts)
        #expect(changes.removedWatches == [WatchSerial(1), WatchSerial(2), WatchSerial(3)])
        let (first, third) = (WatchSample.ending(1, "one.example"), WatchSample.ending(3, "two.example"))
        #expect(
            changes.callbacks == [
                .init(first, WatchSample.address("one.example"), because: .revoked, at: now),
                .init(third, WatchSample.address("two.example"), because: .revoked, at: now),
            ])
        #expect(changes.usage == [WatchSample.app: .added(WatchUsage(watches: -3, callbacks: 2))])
        #expect(changes.removedCallbacks.isEmpty)
        #expect(changes.dropped == 0)
    }

    @Test func `the number of callbacks that wait for the same peers is read`() {
        var questions = ChannelEndQuestions()
        questions.queues = [two]
        #expect(verdict(facts(["one.example", "two.example", nil], waiting: [one: 1])) == .needs(questions))
    }

    @Test func `the oldest are read beyond a limit only`() throws {
        let full = facts(["one.example", "one.example"], waiting: [one: 3], usage: WatchUsage(watches: 2, callbacks: 6))
        #expect(try decided(full, perApp: 8, perPeer: 5).dropped == 0)
        var questions = ChannelEndQuestions()
        questions.oldestOfQueues = [one: 4]
        #expect(verdict(full, perApp: 8, perPeer: 4) == .needs(questions))
        questions.oldestOfApps = [WatchSample.app: 4]
        #expect(verdict(full, perApp: 7, perPeer: 4) == .needs(questions))
        questions.oldestOfQueues = [:]
        #expect(verdict(full, perApp: 7, perPeer: 5) == .needs(questions))
    }

    @Test func `the oldest callback of a peer is dropped for a new one`() throws {
        var facts = facts(["one.example", "one.example"], waiting: [one: 3])
        facts.oldestOfQueues = [one: [21, 22, 23]]
        let changes = try decided(facts, perPeer: 4)
        #expect(changes.removedCallbacks == [21])
        #expect(changes.callbacks.count == 2)
        #expect(changes.dropped == 1)
        #expect(changes.usage == [WatchSample.app: .added(WatchUsage(watches: -2, callbacks: 1))])
    }

    @Test func `the oldest callback of an app is dropped for a new one, and counts no more for its peer`() throws {
        var facts = facts(["one.example", "one.example"], waiting: [one: 2], usage: WatchUsage(watches: 2, callbacks: 3))
        facts.oldestOfApps = [
            WatchSample.app: [
                WaitingCallback(serial: 21, queue: one), WaitingCallback(serial: 22, queue: two),
                WaitingCallback(serial: 23, queue: one),
            ]
        ]
        facts.oldestOfQueues = [one: [21, 23]]
        // The first new one removes 21 for the app, so that the peer has space for the second one.
        let changes = try decided(facts, perApp: 3, perPeer: 3)
        #expect(changes.removedCallbacks == [21, 22])
        #expect(changes.callbacks.count == 2)
    }

    @Test func `a callback that is dropped for its peer counts no more for its app`() throws {
        var facts = facts(["one.example"], waiting: [one: 2], usage: WatchUsage(watches: 1, callbacks: 3))
        facts.oldestOfApps = [WatchSample.app: [WaitingCallback(serial: 20, queue: two)]]
        facts.oldestOfQueues = [one: [21, 23]]
        #expect(try decided(facts, perApp: 3, perPeer: 2).removedCallbacks == [21])
    }

    @Test func `a new callback is dropped itself if none can wait`() throws {
        var facts = facts(["one.example", "one.example"], waiting: [one: 0], usage: WatchUsage(watches: 2))
        facts.oldestOfQueues = [one: []]
        let changes = try decided(facts, perPeer: 0)
        #expect(changes.callbacks.isEmpty)
        #expect(changes.removedCallbacks.isEmpty)
        #expect(changes.dropped == 2)
        #expect(changes.usage == [WatchSample.app: .emptied(WatchUsage(watches: -2))])
        let second = try decided(facts, perPeer: 1)
        #expect(second.callbacks.map(\.webhookID) == ["msg_2"])
        #expect(second.usage == [WatchSample.app: .added(WatchUsage(watches: -2, callbacks: 1))])
    }

    @Test func `apps are counted each for itself`() throws {
        let other = AppSerial(2)
        var facts = ChannelEndFacts()
        facts.watches = [WatchSample.ending(1, "one.example"), WatchSample.ending(2, "one.example", app: other)]
        facts.usage = [
            WatchSample.app: WatchUsage(watches: 1, callbacks: 3), other: WatchUsage(watches: 1, callbacks: 1),
        ]
        facts.waiting = [one: 3, CallbackQueue(other, "one.example:80"): 1]
        facts.oldestOfQueues = [one: [21]]
        let changes = try decided(facts, perPeer: 3)
        #expect(changes.removedCallbacks == [21])
        #expect(
            changes.usage == [
                WatchSample.app: .added(WatchUsage(watches: -1)), other: .added(WatchUsage(watches: -1, callbacks: 1)),
            ])
    }
}
