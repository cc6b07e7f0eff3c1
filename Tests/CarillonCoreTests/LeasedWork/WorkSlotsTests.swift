import CarillonCore
import TestSupport
import Testing

struct WorkSlotsTests {
    /// Makes candidates, each of another app, device and peer by default.
    private struct Calls {
        private var serial: Int64 = 0

        mutating func make(
            _ kind: WorkKind = .ping, app: Int64? = nil, device: Int64? = nil, host: String? = nil, port: Int = 80,
            isOnTrial: Bool = false, readyAt: Int64 = 0, servedAt: Int64 = 0
        ) -> DueWork {
            serial += 1
            let host = host ?? "host\(serial).example"
            return DueWork(
                serial: serial, kind: kind, app: AppSerial(app ?? serial), device: DeviceSerial(device ?? serial),
                peer: "\(host):\(port)", host: host, isOnTrial: isOnTrial, readyAt: Timestamp(milliseconds: readyAt),
                servedAt: Timestamp(milliseconds: servedAt))
        }

        mutating func make(_ count: Int, _ make: (inout Calls, Int) -> DueWork) -> [DueWork] {
            (0..<count).map { make(&self, $0) }
        }
    }

    private var calls = Calls()

    // MARK: Bounds

    @Test func `no more begin than there is room, and no more are under way than there are slots`() {
        var calls = calls
        var work = WorkSlots(slots: 4)
        let due = calls.make(9) { calls, _ in calls.make() }
        let first = work.begin(due, freeSlots: 1)
        #expect(first.map(\.serial) == [1])
        #expect(work.underWay == 1)
        let more = work.begin(Array(due[1...]), freeSlots: 100)
        // The last slot is left to the other kind.
        #expect(more.count == 2)
        #expect(work.begin([calls.make(.callback)], freeSlots: 100).count == 1)
        #expect(work.begin([calls.make(.callback)], freeSlots: 100).isEmpty)
        work.ended(first[0])
        #expect(work.begin([calls.make(.callback)], freeSlots: 100).count == 1)
    }

    @Test(arguments: [1, 2, 16, 64, 1000])
    func `a device has a sixteenth of the slots, however many addresses it has`(slots: Int) {
        var calls = calls
        var work = WorkSlots(slots: slots)
        let due = calls.make(100) { calls, _ in calls.make(app: 1, device: 1) }
        #expect(work.begin(due, freeSlots: slots).count == max(1, slots / 16))
        #expect(work.busy(onTrial: false).devices == [DeviceSerial(1)])
    }

    @Test func `a host has a sixteenth of the slots, for any port and any requester`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let due = calls.make(100) { calls, number in calls.make(host: "one.example", port: number + 1) }
        #expect(work.begin(due, freeSlots: 64).count == 4)
        #expect(work.busy(onTrial: false).hosts == ["one.example"])
    }

    @Test func `a host and port is called by one at a time`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let due = calls.make(9) { calls, _ in calls.make(host: "one.example") }
        let begun = work.begin(due, freeSlots: 64)
        #expect(begun.count == 1)
        #expect(work.busy(onTrial: false).peers == ["one.example:80"])
        work.ended(begun[0])
        #expect(work.busy(onTrial: false) == BusyPeers())
        #expect(work.begin(due, freeSlots: 64).count == 1)
    }

    @Test func `an app alone has three quarters, and the next one finds room`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let greedy = calls.make(200) { calls, number in
            calls.make(number % 2 == 0 ? .ping : .callback, app: 1)
        }
        #expect(work.begin(greedy, freeSlots: 64).count == 48)
        let modest = calls.make(3) { calls, _ in calls.make(app: 2) }
        #expect(work.begin(greedy[100...] + modest, freeSlots: 64).map(\.app.rawValue) == [2, 2, 2])
    }

    @Test(arguments: WorkKind.allCases)
    func `a kind of work alone has three quarters, and the other finds room`(kind: WorkKind) {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let many = calls.make(200) { calls, _ in calls.make(kind) }
        #expect(work.begin(many, freeSlots: 64).count == 48)
        let other = calls.make(kind == .ping ? .callback : .ping)
        #expect(work.begin(many[100...] + [other], freeSlots: 64) == [other])
    }

    @Test func `peers on trial get half of the slots, and proven ones do not wait for them`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let trials = calls.make(200) { calls, number in
            calls.make(number % 2 == 0 ? .ping : .callback, app: Int64(number), isOnTrial: true)
        }
        #expect(work.begin(trials, freeSlots: 64).count == 32)
        let proven = calls.make(200) { calls, number in
            calls.make(number % 2 == 0 ? .ping : .callback, app: Int64(number))
        }
        #expect(work.begin(trials[100...] + proven, freeSlots: 64).count == 32)
        #expect(work.underWay == 64)
    }

    @Test func `calls on trial get half of the quota of an app, a device or a host`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let trials = calls.make(20) { calls, number in
            calls.make(device: 7, host: "mixed.example", port: 1000 + number, isOnTrial: true)
        }
        let begun = work.begin(trials, freeSlots: 64)
        #expect(begun.count == 2)
        #expect(work.busy(onTrial: true).devices == [DeviceSerial(7)])
        #expect(work.busy(onTrial: true).hosts == ["mixed.example"])
        #expect(work.busy(onTrial: false).devices.isEmpty)
        #expect(work.busy(onTrial: false).hosts.isEmpty)
        let proven = calls.make(app: 1, device: 7, host: "mixed.example")
        #expect(work.begin(trials + [proven], freeSlots: 64) == [proven])
        for call in begun + [proven] { work.ended(call) }
        #expect(work.underWay == 0)
        #expect(work.begin(trials, freeSlots: 64).count == 2)
    }

    // MARK: Order

    @Test func `calls of the app with the fewest pending calls go first, then those of such a device`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        _ = work.begin([calls.make(app: 1, device: 1), calls.make(app: 1, device: 1)], freeSlots: 64)
        let sameDevice = calls.make(app: 1, device: 1)
        let sameApp = calls.make(app: 1, device: 2, readyAt: 5)
        let other = calls.make(app: 2, device: 3, readyAt: 9)
        #expect(work.begin([sameDevice, sameApp, other], freeSlots: 3) == [other, sameApp, sameDevice])
    }

    @Test func `of one device, calls to the host with the fewest pending calls go first`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        _ = work.begin([calls.make(app: 2, host: "busy.example", port: 1)], freeSlots: 64)
        let busy = calls.make(app: 1, device: 1, host: "busy.example", port: 2)
        let other = calls.make(app: 1, device: 1, host: "other.example", readyAt: 9)
        #expect(work.begin([busy, other], freeSlots: 1) == [other])
    }

    @Test func `within one round, apps take turns`() {
        var calls = calls
        var work = WorkSlots(slots: 64)
        let first = calls.make(3) { calls, _ in calls.make(app: 1) }
        let second = calls.make(3) { calls, _ in calls.make(app: 2, readyAt: 9) }
        #expect(work.begin(first + second, freeSlots: 4).map(\.app.rawValue) == [1, 2, 1, 2])
    }

    @Test func `among equals those go first that have waited the longest since their queue's turn`() {
        var calls = calls
        let overdueButServed = calls.make(app: 1, readyAt: 1, servedAt: 50)
        let waiting = calls.make(app: 1, readyAt: 20, servedAt: 2)
        let late = calls.make(app: 1, readyAt: 30)
        var work = WorkSlots(slots: 1)
        var order: [Int64] = []
        var due = [late, overdueButServed, waiting]
        while let call = work.begin(due, freeSlots: 1).first {
            order.append(call.serial)
            due.removeAll { $0 == call }
            work.ended(call)
        }
        #expect(order == [waiting.serial, late.serial, overdueButServed.serial])
    }

    // MARK: As a whole

    /// Time advances in steps of 100 ms. A hanging peer occupies its slot for ten seconds; the others answer in one step.
    private struct World {
        var work = WorkSlots(slots: 64)
        var underWay: [(call: DueWork, until: Int64)] = []
        var now: Int64 = 0
        /// How long the calls waited that answer, in milliseconds.
        var waits: [Int64] = []

        /// The candidates of a store: of each app, kind and trust the first few that have not reached their quota.
        private func candidates(_ due: [DueWork]) -> [DueWork] {
            let busySets = [work.busy(onTrial: false), work.busy(onTrial: true)]
            var counts: [Int64: Int] = [:]
            return due.filter { call in
                let busy = busySets[call.isOnTrial ? 1 : 0]
                guard !busy.devices.contains(call.device), !busy.hosts.contains(call.host) else { return false }
                let share = call.app.rawValue * 4 + Int64(call.kind.rawValue * 2) + (call.isOnTrial ? 1 : 0)
                counts[share, default: 0] += 1
                return counts[share, default: 0] <= 16
            }
        }

        /// - Parameter due: All due work; work that was begun is removed.
        mutating func step(_ due: inout [DueWork], hangs: (DueWork) -> Bool) {
            underWay.removeAll { entry in
                guard entry.until <= now else { return false }
                work.ended(entry.call)
                return true
            }
            let begun = work.begin(candidates(due), freeSlots: 64 - work.underWay)
            let serials = Set(begun.map(\.serial))
            due.removeAll { serials.contains($0.serial) }
            for call in begun {
                underWay.append((call, now + (hangs(call) ? 10_000 : 100)))
                if !hangs(call) { waits.append(now - call.readyAt.milliseconds) }
            }
            now += 100
        }
    }

    @Test func `nine hundred addresses of one device that hang keep nobody waiting`() {
        var calls = calls
        var world = World()
        var due = calls.make(900) { calls, _ in calls.make(app: 1, device: 1, isOnTrial: true) }
        let others = calls.make(100) { calls, number in
            calls.make(app: 1, device: Int64(2 + number), readyAt: Int64(number) * 100)
        }
        for step in 0..<120 {
            due += others.filter { $0.readyAt.milliseconds == Int64(step) * 100 }
            world.step(&due) { $0.device == DeviceSerial(1) }
        }
        #expect(world.waits.count == 100)
        #expect(world.waits.max() == 0)
    }

    @Test func `nine hundred hanging devices of one app delay neither other apps nor proven hosts of their own app`() {
        var calls = calls
        var world = World()
        var due = calls.make(900) { calls, _ in calls.make(app: 1, isOnTrial: true) }
        let own = calls.make(100) { calls, number in calls.make(app: 1, readyAt: Int64(number) * 100) }
        let foreign = calls.make(100) { calls, number in
            calls.make(app: 2, isOnTrial: true, readyAt: Int64(number) * 100)
        }
        for step in 0..<120 {
            due += (own + foreign).filter { $0.readyAt.milliseconds == Int64(step) * 100 }
            world.step(&due) { $0.app == AppSerial(1) && $0.isOnTrial }
        }
        #expect(world.waits.count == 200)
        #expect(world.waits.max() == 0)
    }

    @Test(arguments: WorkKind.allCases)
    func `neither kind starves the other, though it be due without end`(kind: WorkKind) {
        var calls = calls
        var world = World()
        var due = calls.make(900) { calls, _ in calls.make(kind, app: 1) }
        let other = calls.make(100) { calls, number in
            calls.make(kind == .ping ? .callback : .ping, app: 1, readyAt: Int64(number) * 100)
        }
        for step in 0..<120 {
            due += other.filter { $0.readyAt.milliseconds == Int64(step) * 100 }
            world.step(&due) { $0.kind == kind }
        }
        #expect(world.waits.count == 100)
        #expect(world.waits.max() == 0)
    }

    /// In every sequence, the limits are respected, and admissible work begins.
    @Test func `in random sequences, no call begins beyond its quota, and no allowed call is omitted`() {
        var random = SeededRandom.forTest()
        var calls = calls
        for slots in [1, 5, 64] {
            var work = WorkSlots(slots: slots)
            var underWay: [DueWork] = []
            for _ in 0..<100 {
                for _ in 0..<Int.random(in: 0...underWay.count, using: &random) {
                    work.ended(underWay.remove(at: Int.random(in: underWay.indices, using: &random)))
                }
                let due = (0..<Int.random(in: 0...80, using: &random)).map { _ in
                    calls.make(
                        Bool.random(using: &random) ? .ping : .callback, app: Int64.random(in: 1...3, using: &random),
                        device: Int64.random(in: 1...9, using: &random),
                        host: "host\(Int.random(in: 1...9, using: &random)).example",
                        port: Int.random(in: 1...9, using: &random), isOnTrial: Bool.random(using: &random))
                }
                let freeSlots = Int.random(in: 0...slots, using: &random)
                let begun = work.begin(due, freeSlots: freeSlots)
                underWay += begun
                #expect(begun.count <= freeSlots)
                #expect(underWay.count == work.underWay)
                #expect(underWay.count <= slots)
                #expect(underWay.count(where: \.isOnTrial) <= max(1, slots / 2))
                for group in [Dictionary(grouping: underWay) { $0.host }, Dictionary(grouping: underWay) { "\($0.device)" }]
                {
                    #expect(group.values.allSatisfy { $0.count <= max(1, slots / 16) })
                }
                #expect(Set(underWay.map(\.peer)).count == underWay.count)
                if begun.count < freeSlots {
                    let left = due.filter { call in !begun.contains { $0.serial == call.serial } }
                    #expect(work.begin(left, freeSlots: slots).isEmpty)
                }
            }
        }
    }
}
