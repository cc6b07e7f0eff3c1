import Testing

@testable import CarillonAPNs

/// Which connections a pool opens and retires, and where it sends pushes.
struct PoolMachineTests {
    static let start = Moment(nanoseconds: 0)

    static func pool(minimum: Int = 1, maximum: Int = 4) -> PoolMachine {
        PoolMachine(options: .init(minimum: minimum, maximum: maximum))
    }

    static func push(_ number: Int) -> PushID { PushID(slot: UInt32(number), generation: 0) }
    static func id(_ number: Int) -> ConnectionID { ConnectionID(number: number) }

    static func opens(_ actions: [PoolMachine.Action]) -> Int {
        actions.count { if case .open = $0 { true } else { false } }
    }

    /// Opened and proven, with capacity for the given number of pushes.
    static func ready(_ pool: inout PoolMachine, _ number: Int, free: Int, inFlight: Int = 0, at now: Moment = start) {
        pool.opened(id(number))
        pool.changed(id(number), free: free, inFlight: inFlight, isProven: true, hasAnswered: true, now: now)
    }

    @Test func `nothing is opened before there is a push`() {
        var pool = Self.pool(minimum: 2)
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
        pool.enqueued(Self.push(1))
        pool.timePassed(Self.start)
        #expect(pool.takeActions() == [.open(Self.id(1)), .open(Self.id(2))])
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
    }

    @Test func `warming up opens the minimum`() {
        var pool = Self.pool(minimum: 3)
        pool.warmUp()
        pool.timePassed(Self.start)
        #expect(Self.opens(pool.takeActions()) == 3)
    }

    @Test func `a push is assigned to the connection with the fewest pending pushes, the oldest push first`() {
        var pool = Self.pool(minimum: 2)
        pool.warmUp()
        pool.timePassed(Self.start)
        Self.ready(&pool, 1, free: 5, inFlight: 3)
        Self.ready(&pool, 2, free: 5, inFlight: 1)
        for number in 1...4 { pool.enqueued(Self.push(number)) }
        let assigned = (1...4).compactMap { _ in pool.nextAssignment() }
        #expect(assigned.map(\.push) == (1...4).map(Self.push))
        #expect(assigned.map(\.connection) == [2, 2, 1, 2].map(Self.id))
    }

    @Test func `returned pushes go first, in their order`() {
        var pool = Self.pool()
        pool.enqueued(Self.push(5))
        pool.returned([Self.push(1), Self.push(2)])
        pool.timePassed(Self.start)
        Self.ready(&pool, 1, free: 3)
        #expect((1...3).compactMap { _ in pool.nextAssignment()?.push } == [1, 2, 5].map(Self.push))
    }

    @Test func `pushes that were abandoned while they waited are skipped, and do not count`() {
        var pool = Self.pool()
        for number in 1...6 { pool.enqueued(Self.push(number)) }
        pool.timePassed(Self.start)
        Self.ready(&pool, 1, free: 9)
        for number in [1, 2, 4, 6] { pool.removed(Self.push(number)) }
        #expect(pool.queued == 2)
        #expect((1...6).compactMap { _ in pool.nextAssignment()?.push } == [3, 5].map(Self.push))
        pool.enqueued(Self.push(7))
        pool.removed(Self.push(7))
        #expect(pool.queued == 0)
        #expect(pool.takeQueue().isEmpty)
    }

    @Test func `a million abandoned pushes behind a waiting one are not kept`() {
        var pool = Self.pool()
        pool.enqueued(Self.push(0))
        for number in 1...1_000_000 {
            pool.enqueued(Self.push(number))
            pool.removed(Self.push(number))
        }
        #expect(pool.queued == 1)
        #expect(pool.queueLength < 3000)
    }

    @Test func `a pool that is full for a while grows by one at a time, to its maximum`() {
        var pool = Self.pool(maximum: 3)
        for number in 1...100 { pool.enqueued(Self.push(number)) }
        pool.timePassed(Self.start)
        #expect(Self.opens(pool.takeActions()) == 1)
        Self.ready(&pool, 1, free: 0, inFlight: 10)
        pool.noteFullness(Self.start)
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
        pool.timePassed(Self.start + .milliseconds(60))
        #expect(Self.opens(pool.takeActions()) == 1)
        // One is opening: no other.
        pool.timePassed(Self.start + .milliseconds(500))
        pool.timePassed(Self.start + .milliseconds(900))
        #expect(pool.takeActions().isEmpty)
        Self.ready(&pool, 2, free: 0, inFlight: 10)
        for tick in 10...40 {
            pool.noteFullness(Self.start + .milliseconds(tick * 100))
            pool.timePassed(Self.start + .milliseconds(tick * 100))
        }
        #expect(Self.opens(pool.takeActions()) == 1)
        Self.ready(&pool, 3, free: 0, inFlight: 10)
        for tick in 41...80 {
            pool.noteFullness(Self.start + .milliseconds(tick * 100))
            pool.timePassed(Self.start + .milliseconds(tick * 100))
        }
        #expect(pool.takeActions().isEmpty)
    }

    @Test func `a connection without a response says nothing about load`() {
        var pool = Self.pool()
        for number in 1...100 { pool.enqueued(Self.push(number)) }
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        pool.opened(Self.id(1))
        pool.changed(Self.id(1), free: 0, inFlight: 1, isProven: false, hasAnswered: false, now: Self.start)
        for tick in 1...50 {
            pool.noteFullness(Self.start + .milliseconds(tick * 100))
            pool.timePassed(Self.start + .milliseconds(tick * 100))
        }
        #expect(pool.takeActions().isEmpty)
    }

    @Test func `an idle connection above the minimum is retired, and the minimum stays`() {
        var pool = Self.pool(minimum: 1)
        pool.warmUp()
        pool.enqueued(Self.push(1))
        pool.timePassed(Self.start)
        Self.ready(&pool, 1, free: 0, inFlight: 10)
        pool.enqueued(Self.push(2))
        pool.noteFullness(Self.start)
        pool.timePassed(Self.start + .seconds(1))
        _ = pool.takeActions()
        Self.ready(&pool, 2, free: 10)
        _ = pool.nextAssignment()
        pool.changed(Self.id(1), free: 10, inFlight: 0, isProven: true, hasAnswered: true, now: Self.start + .seconds(2))
        pool.changed(Self.id(2), free: 10, inFlight: 0, isProven: true, hasAnswered: true, now: Self.start + .seconds(2))
        pool.timePassed(Self.start + .seconds(200))
        #expect(pool.takeActions().isEmpty)
        pool.timePassed(Self.start + .seconds(303))
        #expect(pool.takeActions() == [.retire(Self.id(1))])
        pool.timePassed(Self.start + .seconds(900))
        #expect(pool.takeActions().isEmpty)
    }

    @Test func `after failures one attempt at a time is made, ever later`() {
        var pool = Self.pool(minimum: 3)
        pool.warmUp()
        pool.timePassed(Self.start)
        #expect(Self.opens(pool.takeActions()) == 3)
        for number in 1...3 { pool.ended(Self.id(number), Self.start, random: 1) }
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
        // Three that were tried together are one failure.
        pool.timePassed(Self.start + .milliseconds(999))
        #expect(pool.takeActions().isEmpty)
        let later = Self.start + .seconds(1)
        pool.timePassed(later)
        #expect(pool.takeActions() == [.open(Self.id(4))])
        pool.ended(Self.id(4), later, random: 1)
        pool.timePassed(later + .milliseconds(1999))
        #expect(pool.takeActions().isEmpty)
        pool.timePassed(later + .seconds(2))
        #expect(pool.takeActions() == [.open(Self.id(5))])
    }

    @Test func `a connection that continues to answer does not reset failed attempts`() {
        var pool = Self.pool(minimum: 2)
        pool.warmUp()
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        Self.ready(&pool, 1, free: 5, inFlight: 1)
        pool.ended(Self.id(2), Self.start, random: 1)
        Self.ready(&pool, 1, free: 5, inFlight: 1)
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
        pool.timePassed(Self.start + .seconds(1))
        #expect(pool.takeActions() == [.open(Self.id(3))])
    }

    @Test func `an attempt that the client abandoned is not a failure`() {
        var pool = Self.pool(minimum: 2)
        pool.warmUp()
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        for number in [1, 2] { pool.ended(Self.id(number), Self.start, isRetired: true, random: 1) }
        pool.timePassed(Self.start)
        #expect(pool.takeActions() == [.open(Self.id(3)), .open(Self.id(4))])
    }

    @Test func `a host that accepts and hangs up is not called in a loop`() {
        var pool = Self.pool()
        pool.enqueued(Self.push(1))
        pool.timePassed(Self.start)
        pool.opened(Self.id(1))
        pool.draining(Self.id(1), Self.start, isRetired: false)
        pool.ended(Self.id(1), Self.start, random: 1)
        _ = pool.takeActions()
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
    }

    @Test func `a connection that was of use is replaced at once, while it drains`() {
        var pool = Self.pool()
        pool.enqueued(Self.push(1))
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        Self.ready(&pool, 1, free: 10, inFlight: 4)
        pool.draining(Self.id(1), Self.start, isRetired: false)
        pool.timePassed(Self.start)
        #expect(pool.takeActions() == [.open(Self.id(2))])
    }

    @Test func `a host that answers once and hangs up is not called in a loop either`() {
        var options = PoolMachine.Options()
        options.replacedAtOnce = 4
        options.replacedPerSecond = 2
        var pool = PoolMachine(options: options)
        pool.enqueued(Self.push(1))
        var opened = 0
        for millisecond in 0..<10_000 {
            let now = Self.start + .milliseconds(millisecond)
            pool.timePassed(now)
            for case .open(let id) in pool.takeActions() {
                opened += 1
                Self.ready(&pool, id.number, free: 10, at: now)
                // The connection sends GOAWAY, or only closes: both count, and once.
                if id.number.isMultiple(of: 2) { pool.draining(id, now, isRetired: false) }
                pool.ended(id, now, random: 1)
                #expect(opened > 4 || !pool.isPaced(now))
            }
        }
        // The first, four for it and its like, and two in each of the ten seconds.
        #expect((22...25).contains(opened), "\(opened)")
    }

    @Test func `a connection that answered late is counted when it ends`() {
        var options = PoolMachine.Options()
        options.replacedAtOnce = 0.5
        var pool = PoolMachine(options: options)
        pool.enqueued(Self.push(1))
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        pool.opened(Self.id(1))
        pool.draining(Self.id(1), Self.start, isRetired: false)
        #expect(!pool.isPaced(Self.start))
        pool.changed(Self.id(1), free: 0, inFlight: 0, isProven: true, hasAnswered: true, now: Self.start)
        pool.ended(Self.id(1), Self.start, random: 1)
        #expect(pool.isPaced(Self.start))
        #expect(!pool.isPaced(Self.start + .seconds(1)))
    }

    @Test func `connections that the pool itself closes are not counted`() {
        var options = PoolMachine.Options()
        options.replacedAtOnce = 0
        var pool = PoolMachine(options: options)
        pool.enqueued(Self.push(1))
        pool.timePassed(Self.start)
        Self.ready(&pool, 1, free: 10)
        pool.draining(Self.id(1), Self.start)
        pool.timePassed(Self.start)
        Self.ready(&pool, 2, free: 10)
        pool.ended(Self.id(2), Self.start, isRetired: true, random: 1)
        pool.timePassed(Self.start)
        #expect(pool.takeActions() == (1...3).map { .open(Self.id($0)) })
        #expect(!pool.isPaced(Self.start))
    }

    @Test func `a push for a newer connection waits for one, and delays no other`() {
        var pool = Self.pool(minimum: 2, maximum: 2)
        pool.warmUp()
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        Self.ready(&pool, 1, free: 5)
        Self.ready(&pool, 2, free: 5, inFlight: 1)
        pool.enqueued(Self.push(1), after: pool.newestConnection)
        pool.enqueued(Self.push(2))
        #expect(pool.queued == 2)
        #expect(pool.nextAssignment()?.push == Self.push(2))
        #expect(pool.nextAssignment() == nil)
        // There are as many as may be, until one is retired.
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
        pool.draining(Self.id(1), Self.start)
        pool.timePassed(Self.start)
        #expect(pool.takeActions() == [.open(Self.id(3))])
        pool.timePassed(Self.start)
        #expect(pool.takeActions().isEmpty)
        Self.ready(&pool, 3, free: 5, inFlight: 4)
        let next = pool.nextAssignment()
        #expect(next?.push == Self.push(1))
        #expect(next?.connection == Self.id(3))
        #expect(pool.queued == 0)
    }

    @Test func `a push for a newer connection can be abandoned, and fails when nothing can be sent`() {
        var pool = Self.pool()
        pool.enqueued(Self.push(1), after: 1)
        pool.enqueued(Self.push(2), after: 1)
        pool.enqueued(Self.push(3))
        pool.removed(Self.push(1))
        #expect(pool.queued == 2)
        #expect(pool.takeQueue() == [2, 3].map(Self.push))
        #expect(pool.queued == 0)
    }

    @Test func `a refusal for a topic is tried on one new connection a minute`() {
        var ledger = FreshnessLedger()
        let minute = Self.start + .seconds(60)
        #expect(ledger.refused(on: 2, newest: 8, Self.start) == .elsewhere(after: 8, retires: true))
        // The others of the pool are as old, and are kept.
        for number in [1, 3, 8] {
            #expect(ledger.refused(on: number, newest: 9, Self.start) == .elsewhere(after: 8, retires: false))
        }
        #expect(ledger.refused(on: 9, newest: 9, Self.start + .seconds(59)) == .final)
        #expect(ledger.refused(on: 3, newest: 9, minute) == .elsewhere(after: 8, retires: true))
        #expect(ledger.refused(on: 9, newest: 9, minute) == .final)
        #expect(ledger.refused(on: 9, newest: 12, minute + .seconds(60)) == .elsewhere(after: 12, retires: true))
    }

    @Test func `new credentials retire every connection`() {
        var pool = Self.pool(minimum: 2)
        pool.warmUp()
        pool.timePassed(Self.start)
        _ = pool.takeActions()
        Self.ready(&pool, 1, free: 10)
        pool.credentialsChanged()
        #expect(pool.takeActions() == [.retire(Self.id(1)), .retire(Self.id(2))])
    }

    @Test func `delays double from one second to sixty, and half of each is random`() {
        var schedule = APNsReconnectSchedule()
        var now = Self.start
        var delays: [Double] = []
        for _ in 0..<9 {
            schedule.failed(now, random: 1)
            let until = schedule.notBefore ?? now
            delays.append((until - now) / .seconds(1))
            now = until
        }
        #expect(delays == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        schedule.failed(now, random: 0)
        #expect(schedule.notBefore == now + .seconds(30))
        schedule.succeeded()
        #expect(schedule.allows(Self.start))
    }
}
