/// Which of the requests that take long may go on: so many at a time of each owner and of all owners together. The others wait, and go on in
/// the order in which they came, as far as their owners may.
package struct TurnQueue<Owner: Hashable & Sendable>: Sendable {
    package struct Limits: Sendable {
        package var perOwner: Int
        package var all: Int
        /// How many may wait; one more is refused at once.
        package var waiting: Int
        /// How long one waits before it is refused.
        package var wait: Duration

        package init(perOwner: Int = 1, all: Int = 2, waiting: Int = 256, wait: Duration = .seconds(2)) {
            self.perOwner = perOwner
            self.all = all
            self.waiting = waiting
            self.wait = wait
        }
    }

    package enum Asked: Equatable, Sendable {
        case granted
        /// It has this number until it is granted, or gives up.
        case waits(Int)
        case refused
    }

    private let limits: Limits
    private var running: [Owner: Int] = [:]
    private var runningInAll = 0
    private var waiting: [(number: Int, owner: Owner)] = []
    private var lastNumber = 0

    package init(limits: Limits = Limits()) { self.limits = limits }

    package mutating func ask(_ owner: Owner) -> Asked {
        if start(owner) { return .granted }
        guard waiting.count < limits.waiting else { return .refused }
        lastNumber += 1
        waiting.append((lastNumber, owner))
        return .waits(lastNumber)
    }

    /// One that was granted is done. Answers which of those that waited are granted now.
    package mutating func end(_ owner: Owner) -> [Int] {
        runningInAll -= 1
        let left = running[owner, default: 1] - 1
        running[owner] = left > 0 ? left : nil
        var granted: [Int] = []
        waiting.removeAll { one in
            guard start(one.owner) else { return false }
            granted.append(one.number)
            return true
        }
        return granted
    }

    /// One waited too long. Answers whether it did still wait.
    package mutating func giveUp(_ number: Int) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.number == number }) else { return false }
        waiting.remove(at: index)
        return true
    }

    private mutating func start(_ owner: Owner) -> Bool {
        guard runningInAll < limits.all, running[owner, default: 0] < limits.perOwner else { return false }
        running[owner, default: 0] += 1
        runningInAll += 1
        return true
    }
}
