import CarillonCore
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CallResultsTests {
    @Test func `the newest 1,024 results that cannot be written are kept, and written later`()
        async throws
    {
        let clock = Mutex(Sample.now)
        let (store, user) = (EndlessWork(), ForgetfulUser())
        let work = LeasedWork(
            store: store, user: user, limits: .init(underWay: 64, perSecond: 10_000),
            time: TimeSource { clock.withLock { $0 } })
        var (done, last): (Int, Int64) = (0, 0)
        while done < 1300 {
            clock.withLock { $0 = $0.adding(milliseconds: 500) }
            let begun = try await work.due()
            try #require(!begun.isEmpty)
            for one in begun { await #expect(throws: StoreFault.self) { try await work.ended(one, .answered(status: 200)) } }
            done += begun.count
            last = begun.last?.job ?? 0
        }
        #expect(work.underWay == 0)
        store.isOver.withLock { $0 = true }
        user.isWell.withLock { $0 = true }
        for _ in 0..<40 { #expect(try await work.due().isEmpty) }
        let written = user.written.withLock { $0 }
        #expect(Set(written).count == written.count)
        #expect(written.count == 1024)
        #expect(written.contains(last))
    }
}

/// Returns new work at each call, each item of another device and another peer.
private final class EndlessWork: LeasedWorkStore {
    let isOver = Mutex(false)
    private let last = Mutex<Int64>(0)

    func bringBackWork(in shards: ShardSet, at now: Timestamp) async throws {}

    func dueWork(
        in shards: ShardSet, at now: Timestamp, besides busy: BusyPeerSets, limit: Int
    ) async throws -> [DueWork] {
        guard !isOver.withLock({ $0 }) else { return [] }
        return last.withLock { last in
            (0..<64).map { _ in
                last += 1
                return DueWork(
                    serial: last, kind: last % 2 == 0 ? .ping : .callback, app: AppSerial(last % 7),
                    device: DeviceSerial(last), peer: "\(last).example:80", host: "\(last).example", isOnTrial: false,
                    readyAt: now, servedAt: now)
            }
        }
    }
}

/// Cannot write until a test sets `isWell`.
private final class ForgetfulUser: WorkUser {
    let isWell = Mutex(false)
    let written = Mutex<[Int64]>([])

    func beganAfterPause(at now: Timestamp) async throws {}

    func lease(_ work: [DueWork], at now: Timestamp, until end: Timestamp) async throws -> LeasedItems<Int64> {
        LeasedItems(
            items: work.map { work in
                LeasedItem(
                    lease: WorkLease(work: work.serial, fence: 1), due: work, health: EndpointHealth(),
                    subject: work.serial)
            }, unreadable: 0)
    }

    func job(for item: LeasedItem<Int64>) -> WorkJob<Int64> { .possible(item.subject) }

    func ended(_ subject: Int64, _ result: CallResult, _ end: WorkEnd) async throws {
        guard isWell.withLock({ $0 }) else { throw StoreFault(.full, "no space") }
        written.withLock { $0.append(subject) }
    }
}
