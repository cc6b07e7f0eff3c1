/// Decides which expensive requests may run: a limited number for each owner and for all owners together. The others wait. The
/// next request is the oldest one of the owner whose last request started longest ago.
package struct TurnQueue<Owner: Hashable & Sendable>: Sendable {
    package struct Limits: Sendable {
        package var perOwner: Int
        package var all: Int
        /// The number of requests that may wait for each owner, and for all owners together. Further requests are refused at
        /// once.
        package var waitingPerOwner: Int
        package var waiting: Int
        /// How long a request waits before it is refused.
        package var wait: Duration

        package init(
            perOwner: Int = 1, all: Int = 2, waitingPerOwner: Int = 64, waiting: Int = 1024, wait: Duration = .seconds(2)
        ) {
            self.perOwner = perOwner
            self.all = all
            self.waitingPerOwner = waitingPerOwner
            self.waiting = waiting
            self.wait = wait
        }
    }

    package enum Admission: Equatable, Sendable {
        case granted
        /// The request has this number until it is granted or gives up.
        case waits(Int)
        case refused
    }

    private let limits: Limits
    private var running: [Owner: Int] = [:]
    private var runningInAll = 0
    private var waiting: [(number: Int, owner: Owner)] = []
    private var waitingOf: [Owner: Int] = [:]
    private var lastNumber = 0
    /// The number of the last granted request, by owner. Only owners with requests in the queue are present.
    private var lastGranted: [Owner: Int] = [:]
    private var grants = 0

    package init(limits: Limits = Limits()) { self.limits = limits }

    package mutating func request(_ owner: Owner) -> Admission {
        if start(owner) { return .granted }
        guard waiting.count < limits.waiting, waitingOf[owner, default: 0] < limits.waitingPerOwner else { return .refused }
        lastNumber += 1
        waiting.append((lastNumber, owner))
        waitingOf[owner, default: 0] += 1
        return .waits(lastNumber)
    }

    /// A granted request ended. Returns the waiting requests that are granted now.
    package mutating func end(_ owner: Owner) -> [Int] {
        runningInAll -= 1
        let left = running[owner, default: 1] - 1
        running[owner] = left > 0 ? left : nil
        forget(owner)
        var granted: [Int] = []
        while let index = next, start(waiting[index].owner) {
            let one = waiting.remove(at: index)
            granted.append(one.number)
            waitsNoMore(one.owner)
        }
        return granted
    }

    /// A request waited too long. Returns whether it was still waiting.
    package mutating func giveUp(_ number: Int) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.number == number }) else { return false }
        waitsNoMore(waiting.remove(at: index).owner)
        return true
    }

    private mutating func waitsNoMore(_ owner: Owner) {
        let left = waitingOf[owner, default: 1] - 1
        waitingOf[owner] = left > 0 ? left : nil
        forget(owner)
    }

    private mutating func forget(_ owner: Owner) {
        if running[owner] == nil, waitingOf[owner] == nil { lastGranted[owner] = nil }
    }

    /// The index of the next request that may run.
    private var next: Int? {
        let free = waiting.indices.filter { running[waiting[$0].owner, default: 0] < limits.perOwner }
        // The first of several requests of one owner is the oldest.
        return free.min { lastGranted[waiting[$0].owner, default: 0] < lastGranted[waiting[$1].owner, default: 0] }
    }

    private mutating func start(_ owner: Owner) -> Bool {
        guard runningInAll < limits.all, running[owner, default: 0] < limits.perOwner else { return false }
        running[owner, default: 0] += 1
        runningInAll += 1
        grants += 1
        lastGranted[owner] = grants
        return true
    }
}
