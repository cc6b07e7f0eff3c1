/// A regular expression that takes time linear in the text. All ways to match are followed at the same time, one character
/// after the other (Pike's machine, without captures).
struct Pattern: Sendable {
    private enum Instruction {
        case scalar(UInt32)
        case set(Int32)
        case any
        case split(Int32, Int32)
        case jump(Int32)
        case assertion(PatternTree.Assertion)
        case match
    }

    private let instructions: [Instruction]
    private let sets: [ScalarSet]
    /// The number of instructions, plus the additional steps of sets.
    private let weight: Int

    /// Throws with the position at which the pattern is invalid, or if the pattern has more instructions than the limit.
    init(_ text: String, limit: Int) throws(PatternProblem) {
        var builder = Builder(limit: limit)
        try builder.emit(PatternParser.parse(text))
        try builder.append(.match)
        instructions = builder.instructions
        sets = builder.sets
        weight = builder.weight
    }

    /// Returns the units of cost for a text of the given length in bytes. Each character is compared at each instruction at
    /// most once.
    func cost(of bytes: Int) -> Int { 1 + (bytes + 1) * (weight + 3) / 4 }

    // MARK: Building

    private struct Builder {
        var instructions: [Instruction] = []
        var sets: [ScalarSet] = []
        let limit: Int
        private(set) var weight = 0
        /// Counts the steps of building as well, because repetitions of nothing have no instructions.
        private var steps = 0

        init(limit: Int) { self.limit = limit }

        private var next: Int32 { Int32(instructions.count) }

        mutating func append(_ instruction: Instruction) throws(PatternProblem) {
            weight += 1
            guard weight <= limit else {
                throw PatternProblem(message: "the pattern has more than \(limit) instructions", offset: 0)
            }
            instructions.append(instruction)
        }

        mutating func emit(_ tree: PatternTree) throws(PatternProblem) {
            steps += 1
            guard steps <= 4 * limit else {
                throw PatternProblem(message: "the pattern repeats repetitions too often", offset: 0)
            }
            switch tree {
            case .empty: break
            case .scalar(let scalar): try append(.scalar(scalar.value))
            case .set(var set):
                set.settle()
                sets.append(set)
                weight += set.weight - 1
                try append(.set(Int32(sets.count - 1)))
            case .any: try append(.any)
            case .assertion(let assertion): try append(.assertion(assertion))
            case .sequence(let parts): for part in parts { try emit(part) }
            case .choice(let branches): try emit(branches)
            case .repetition(let part, let least, let most): try emit(part, least, most)
            }
        }

        private mutating func emit(_ branches: [PatternTree]) throws(PatternProblem) {
            var jumps: [Int] = []
            for (index, branch) in branches.enumerated() {
                guard index < branches.count - 1 else {
                    try emit(branch)
                    break
                }
                let split = instructions.count
                try append(.split(next + 1, 0))
                try emit(branch)
                jumps.append(instructions.count)
                try append(.jump(0))
                instructions[split] = .split(Int32(split + 1), next)
            }
            for jump in jumps { instructions[jump] = .jump(next) }
        }

        private mutating func emit(_ part: PatternTree, _ least: Int, _ most: Int?) throws(PatternProblem) {
            for _ in 0..<least { try emit(part) }
            guard let most else {
                let split = instructions.count
                try append(.split(next + 1, 0))
                try emit(part)
                try append(.jump(Int32(split)))
                instructions[split] = .split(Int32(split + 1), next)
                return
            }
            var splits: [Int] = []
            for _ in least..<max(least, most) {
                splits.append(instructions.count)
                try append(.split(next + 1, 0))
                try emit(part)
            }
            for split in splits { instructions[split] = .split(Int32(split + 1), next) }
        }
    }

    // MARK: Matching

    /// Whether a part of the text matches.
    func matches(_ text: String) -> Bool {
        var current = Threads(instructions.count)
        var following = Threads(instructions.count)
        var previous: Unicode.Scalar?
        var scalars = text.unicodeScalars.makeIterator()
        var scalar = scalars.next()
        while true {
            // A match can start at every position.
            if follow(0, in: &current, between: previous, and: scalar) { return true }
            guard let now = scalar else { return false }
            let after = scalars.next()
            following.clear()
            for place in current where takes(Int(place), now) {
                if follow(place + 1, in: &following, between: now, and: after) { return true }
            }
            swap(&current, &following)
            previous = now
            scalar = after
        }
    }

    private func takes(_ place: Int, _ scalar: Unicode.Scalar) -> Bool {
        switch instructions[place] {
        case .scalar(let value): value == scalar.value
        case .set(let number): sets[Int(number)].contains(scalar)
        case .any: true
        default: false
        }
    }

    /// Adds all instructions that can be reached without a character. Returns whether the end is among them.
    private func follow(
        _ first: Int32, in threads: inout Threads, between previous: Unicode.Scalar?, and next: Unicode.Scalar?
    ) -> Bool {
        threads.pending.append(first)
        while let place = threads.pending.popLast() {
            guard threads.insert(place) else { continue }
            switch instructions[Int(place)] {
            case .match:
                threads.pending.removeAll(keepingCapacity: true)
                return true
            case .jump(let target): threads.pending.append(target)
            case .split(let one, let other):
                threads.pending.append(other)
                threads.pending.append(one)
            case .assertion(let assertion):
                if Self.holds(assertion, between: previous, and: next) { threads.pending.append(place + 1) }
            default: break
            }
        }
        return false
    }

    private static func holds(
        _ assertion: PatternTree.Assertion, between previous: Unicode.Scalar?, and next: Unicode.Scalar?
    ) -> Bool {
        switch assertion {
        case .beginOfText: previous == nil
        case .endOfText: next == nil
        case .beginOfLine: previous == nil || previous == "\n"
        case .endOfLine: next == nil || next == "\n"
        case .wordBoundary: isWord(previous) != isWord(next)
        case .noWordBoundary: isWord(previous) == isWord(next)
        }
    }

    private static func isWord(_ scalar: Unicode.Scalar?) -> Bool {
        guard let scalar else { return false }
        return ScalarSet.words.contains { $0.contains(scalar.value) }
    }
}

/// A set of positions in a program, in the order of insertion, which can be emptied in constant time.
private struct Threads: Sequence {
    private var places: [Int32] = []
    private var indexes: [Int32]
    /// Positions whose successors are not added yet.
    var pending: [Int32] = []

    init(_ count: Int) {
        indexes = Array(repeating: 0, count: count)
        places.reserveCapacity(count)
    }

    mutating func insert(_ place: Int32) -> Bool {
        let index = Int(indexes[Int(place)])
        if index < places.count, places[index] == place { return false }
        indexes[Int(place)] = Int32(places.count)
        places.append(place)
        return true
    }

    mutating func clear() { places.removeAll(keepingCapacity: true) }

    func makeIterator() -> IndexingIterator<[Int32]> { places.makeIterator() }
}
