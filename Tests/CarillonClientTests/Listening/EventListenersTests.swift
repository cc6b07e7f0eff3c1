import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The life of a stream of events.
@Suite(.timeLimit(.minutes(5)))
struct EventListenersTests {
    private final class Subject: Sendable {}
    private final class Payload: Sendable {}

    private struct Notice: StreamedEvent {
        var payload: Payload?
        var isOfUser = true
        var rank: EventRank { .lasting }

        static func missed(_ count: Int) -> Notice { Notice() }
    }

    private typealias Listeners = EventListeners<Subject, Notice>

    private static func listeners() -> Listeners {
        Listeners(calling: .init(added: { _, _ in }, removed: { _, _ in }, happened: { _, _, _ in }))
    }

    @Test func `an event whose delegates are removed before their call is reported as unheard`() async throws {
        let heard = Mutex<[Bool]>([])
        let sources = Mutex<[Listeners]>([])
        let listeners = Listeners(
            calling: .init(
                added: { _, _ in }, removed: { _, _ in },
                happened: { delegate, _, subject in
                    sources.withLock { $0.first }?.remove(delegate, from: subject)
                },
                finished: { _, _, wasDelivered in heard.withLock { $0.append(wasDelivered) } }))
        sources.withLock { $0 = [listeners] }
        let (subject, delegate) = (Subject(), Payload())
        #expect(!listeners.deliver([Notice()]), "there is no delegate")
        listeners.add(delegate, to: subject)
        #expect(listeners.deliver([Notice(), Notice()]))
        try await eventually { heard.withLock { $0 } == [true, false] }
        sources.withLock { $0 = [] }
        withExtendedLifetime((subject, delegate)) {}
    }

    @Test func `an event with which delegates must not be called is reported as unheard`() async throws {
        let heard = Mutex<[Bool]>([])
        let calls = Mutex(0)
        let listeners = Listeners(
            calling: .init(
                added: { _, _ in }, removed: { _, _ in }, happened: { _, _, _ in calls.withLock { $0 += 1 } },
                willHappen: { event, _ in event.payload == nil },
                finished: { _, _, wasDelivered in heard.withLock { $0.append(wasDelivered) } }))
        let (subject, delegate) = (Subject(), Payload())
        listeners.add(delegate, to: subject)
        #expect(listeners.deliver([Notice(payload: Payload()), Notice()]))
        try await eventually { heard.withLock { $0 } == [false, true] }
        #expect(calls.withLock { $0 } == 1)
        withExtendedLifetime((subject, delegate)) {}
    }

    @Test func `iterations do not receive the waiting events of a former user, and count none of them as missed`() async {
        let listeners = Self.listeners()
        var reading = listeners.subscribe().makeAsyncIterator()
        weak var kept: Payload?
        do {
            let payload = Payload()
            kept = payload
            listeners.notify([Notice(payload: payload), Notice(isOfUser: false), Notice(payload: payload)])
        }
        listeners.ownerChanged()
        #expect(kept == nil)
        let later = Payload()
        listeners.notify([Notice(payload: later)])
        let first = await reading.next()
        let second = await reading.next()
        #expect(first?.isOfUser == false && second?.payload === later)
    }

    @Test func `delegates are not called with events of a former user, even if their calls have begun`()
        async throws
    {
        let heard = Mutex<[Bool]>([])
        let calls = Mutex(0)
        let sources = Mutex<[Listeners]>([])
        let listeners = Listeners(
            calling: .init(
                added: { _, _ in }, removed: { _, _ in },
                happened: { _, _, _ in
                    calls.withLock { $0 += 1 }
                    sources.withLock { $0.first }?.ownerChanged()
                },
                finished: { event, _, wasDelivered in heard.withLock { $0.append(event.isOfUser && wasDelivered) } }))
        sources.withLock { $0 = [listeners] }
        let (subject, one, two) = (Subject(), Payload(), Payload())
        listeners.add(one, to: subject)
        listeners.add(two, to: subject)
        // The user changes in the first call: the second delegate does not receive this event, and neither receives the next one.
        #expect(listeners.deliver([Notice(), Notice(), Notice(isOfUser: false)]))
        try await eventually { heard.withLock { $0.count } == 3 }
        #expect(calls.withLock { $0 } == 3)
        #expect(heard.withLock { $0 }.filter { $0 }.count == 1)
        sources.withLock { $0 = [] }
        withExtendedLifetime((subject, one, two)) {}
    }

    @Test func `a delegate is not called with an event if the user changes while the call waits`() async throws {
        let heard = Mutex<[Bool]>([])
        let sources = Mutex<[Listeners]>([])
        let listeners = Listeners(
            calling: .init(
                added: { _, _ in }, removed: { _, _ in }, happened: { _, _, _ in },
                willHappen: { event, _ in
                    if event.payload != nil { sources.withLock { $0.first }?.ownerChanged() }
                    return true
                },
                finished: { _, _, wasDelivered in heard.withLock { $0.append(wasDelivered) } }))
        sources.withLock { $0 = [listeners] }
        let (subject, delegate) = (Subject(), Payload())
        listeners.add(delegate, to: subject)
        #expect(listeners.deliver([Notice(payload: Payload())]))
        try await eventually { heard.withLock { $0 } == [false] }
        #expect(listeners.deliver([Notice()]))
        try await eventually { heard.withLock { $0 } == [false, true] }
        sources.withLock { $0 = [] }
        withExtendedLifetime((subject, delegate)) {}
    }

    @Test(arguments: [true, false])
    func `the code around the calls for an event begins before them and ends after them`(isBegun: Bool) async throws {
        let steps = Mutex<[String]>([])
        let listeners = Listeners(
            calling: .init(
                added: { _, _ in }, removed: { _, _ in }, happened: { _, _, _ in steps.withLock { $0.append("called") } },
                finished: { _, _, wasDelivered in steps.withLock { $0.append("heard: \(wasDelivered)") } }))
        let start = DelegateStart(
            begins: {
                steps.withLock { $0.append("begins") }
                return isBegun
            },
            ended: { steps.withLock { $0.append("ended") } })
        let (subject, delegate) = (Subject(), Payload())
        listeners.notify([Notice()], start: start)
        #expect(steps.withLock { $0.isEmpty }, "there is no delegate")
        listeners.add(delegate, to: subject)
        listeners.notify([Notice()], start: start)
        let expected = ["begins"] + (isBegun ? ["called"] : []) + ["ended", "heard: \(isBegun)"]
        try await eventually { steps.withLock { $0 } == expected }
        withExtendedLifetime((subject, delegate)) {}
    }

    @Test func `a stream that was released keeps no event`() {
        let listeners = Self.listeners()
        var streams = [listeners.subscribe()]
        weak var kept: Payload?
        do {
            let payload = Payload()
            kept = payload
            listeners.notify([Notice(payload: payload)])
        }
        #expect(kept != nil && streams.count == 1)
        streams.removeAll()
        #expect(kept == nil)
    }

    @Test func `a stream that was cancelled ends, and keeps no later event`() async {
        let listeners = Self.listeners()
        let stream = listeners.subscribe()
        let reading = Task {
            var count = 0
            for await _ in stream { count += 1 }
            return count
        }
        reading.cancel()
        #expect(await reading.value == 0)
        weak var kept: Payload?
        do {
            let payload = Payload()
            kept = payload
            listeners.notify([Notice(payload: payload)])
        }
        #expect(kept == nil)
    }

    @Test func `a stream whose events have no source any more ends after the last event`() async {
        func begun() -> AsyncStream<Notice> {
            let listeners = Self.listeners()
            defer { listeners.notify([Notice(), Notice()]) }
            return listeners.subscribe()
        }
        var count = 0
        for await _ in begun() { count += 1 }
        #expect(count == 2)
    }

    @Test func `a waiting reader receives events, and ends with the source`() async {
        var sources = [Self.listeners()]
        let stream = sources[0].subscribe()
        let (hears, isHearing) = AsyncStream.makeStream(of: Void.self)
        let reading = Task {
            var count = 0
            for await _ in stream {
                count += 1
                isHearing.yield()
            }
            return count
        }
        for number in 1...3 {
            sources[0].notify([Notice()])
            if number < 3 { for await _ in hears { break } }
        }
        sources.removeAll()
        #expect(await reading.value == 3)
    }
}
