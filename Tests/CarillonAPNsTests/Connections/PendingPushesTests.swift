import Testing

@testable import CarillonAPNs

/// Places of pushes that are used again.
struct PendingPushesTests {
    private static let now = Moment(nanoseconds: 1)

    private static func submission(_ path: String) -> Submission {
        Submission(head: APNsRequestHead(fields: []), path: path, body: .none, timeout: .seconds(1))
    }

    @Test func `a reference to an earlier push does not reach the next push in its place`() {
        var table = PendingPushes()
        let first = table.add(Self.submission("/first"), Self.now)
        #expect(table.holds(first))
        #expect(table.remove(first)?.path == "/first")
        let second = table.add(Self.submission("/second"), Self.now)
        #expect(second.slot == first.slot)
        #expect(!table.holds(first))
        #expect(table.remove(first) == nil)
        #expect(table[second]?.path == "/second")
        #expect(table.count == 1)
    }

    @Test func `unread results delay neither their batch nor the connection`() {
        weak var kept: BatchBox?
        weak var link: Link?
        do {
            let box = BatchBox()
            kept = box
            let connection = Link(
                ConnectionID(number: 1), ConnectionMachine(options: .init(), now: Self.now), credentialsEpoch: 0, Self.now)
            link = connection
            let submission = Submission(
                head: APNsRequestHead(fields: []), path: "/", body: .none, timeout: .seconds(1), waiter: .batch(box))
            submission.place = .stream(connection, 1)
            submission.end(.success(RawAnswer(status: 200)))
        }
        #expect(kept == nil)
        #expect(link == nil)
    }

    @Test func `a push has its place and its deadline`() {
        var table = PendingPushes()
        let submission = Self.submission("/")
        let push = table.add(submission, Self.now)
        #expect(submission.push == push)
        #expect(table.expired(Moment(nanoseconds: 1_000_000_000)).isEmpty)
        #expect(table.expired(Moment(nanoseconds: 1_000_000_001)) == [push])
    }
}
