import Foundation
import StoreWorkload
import TestStores
import TestSupport
import Testing

/// A store that a process changes, run after run, until the process is killed.
///
/// After a kill, the store must be like a copy of the store on which the answered operations were repeated. Both are opened again
/// before they are read. An operation without an answer is repeated as well if its track differs without it.
struct KilledStore {
    struct Tally: Sendable, CustomStringConvertible {
        var answered = 0
        /// Operations that had begun when the process was killed.
        var unanswered = 0
        /// The operations that are in the store.
        var found = 0
        /// The kinds of operations that found something to change.
        var effective: Set<WorkloadOperation.Kind> = []

        mutating func add(_ other: Tally) {
            answered += other.answered
            unanswered += other.unanswered
            found += other.found
            effective.formUnion(other.effective)
        }

        var description: String { "answered: \(answered), unanswered: \(unanswered), found of these: \(found)" }
    }

    /// The facts that are read of a store.
    private struct Reading {
        /// By track.
        var facts: [[String: String]] = []
        var waitingInAll = ""
    }

    private let kind: NamedStores
    private let seed: UInt64
    private let directory: String
    /// A copy of the store before the run, and one that operations are repeated on.
    private let before: String
    private let repeated: String
    private var run: Int64 = 0
    /// The last operations of each track whose traces are read.
    private var traces: [[WorkloadOperation]]
    private(set) var tally = Tally()

    private static let mostTraces = 12

    init(_ kind: NamedStores, seed: UInt64) async throws {
        let place = try TemporaryDirectory.make()
        self.kind = kind
        self.seed = seed
        directory = place + "/store"
        before = place + "/before"
        repeated = place + "/repeated"
        traces = Array(repeating: [], count: WorkloadOperation.tracks)
        let store = try await WorkloadStore(at: directory, of: kind.maker)
        try await store.prepare()
        try await store.close()
    }

    /// Starts the process, kills it, and checks the store.
    mutating func killOnce(_ random: inout SeededRandom) async throws {
        try await kind.maker.copy(directory, to: before)
        let program = try Program(
            Program.built("StoreWorkload"), [kind.rawValue, directory, String(seed), String(run)])
        // One kill in eight can occur while the store is opened.
        if random.next() % 8 > 0 { _ = try await program.line { $0 == "opened" ? true : nil } }
        try await Task.sleep(for: .milliseconds(Int.random(in: 1...120, using: &random)))
        program.signal(SIGKILL)
        let status = await program.exitStatus()
        try #require(status == -SIGKILL, "run \(run) ended by itself: \(program.output.suffix(3))")
        let log = try WorkloadLog(program.output, seed: seed)
        note(log)
        try await check(log)
        run += 1
    }

    private mutating func note(_ log: WorkloadLog) {
        for (number, track) in log.tracks.enumerated() {
            tally.answered += track.answered.count
            for (operation, answer) in track.answered where answer != WorkloadTrack.nothing {
                tally.effective.insert(operation.kind)
                #expect(!answer.contains("StoreFault"), "seed \(seed), operation \(operation.number), \(operation.kind)")
            }
            let operations = track.answered.map { $0.operation } + [track.unanswered].compactMap { $0 }
            let found = traces[number] + operations.filter { $0.leavesTraces }
            traces[number] = Array(found.suffix(Self.mostTraces))
            if track.unanswered != nil { tally.unanswered += 1 }
        }
    }

    private mutating func check(_ log: WorkloadLog) async throws {
        let found = try await read(directory)
        var expected = try await repeating(log, unanswered: [])
        var done: Set<Int> = []
        for (number, track) in log.tracks.enumerated() where track.unanswered != nil {
            if found.facts[number] != expected.facts[number] { done.insert(number) }
        }
        if !done.isEmpty { expected = try await repeating(log, unanswered: done) }
        tally.found += done.count
        for (number, track) in log.tracks.enumerated() {
            let differences = Self.differences(found.facts[number], expected.facts[number])
            let last = track.unanswered.map { "\($0.kind) \($0.number)" } ?? "none"
            try #require(
                differences.isEmpty,
                "seed \(seed), run \(run), track \(number), unanswered: \(last):\n\(differences.joined(separator: "\n"))")
        }
        try #require(found.waitingInAll == expected.waitingInAll, "seed \(seed), run \(run)")
    }

    private static func differences(_ found: [String: String], _ expected: [String: String]) -> [String] {
        let names = Set(found.keys).union(expected.keys).sorted().filter { found[$0] != expected[$0] }
        return names.prefix(5).map { name in
            "\(name):\n    found    \(found[name] ?? "nothing")\n    expected \(expected[name] ?? "nothing")"
        }
    }

    private func read(_ directory: String) async throws -> Reading {
        let store = try await WorkloadStore(at: directory, of: kind.maker)
        let isSound = try await store.isSound()
        #expect(isSound, "seed \(seed), run \(run): the store found itself damaged")
        let wrong = try await store.wrongCounters()
        #expect(wrong.isEmpty, "seed \(seed), run \(run): \(wrong.joined(separator: ", "))")
        var reading = Reading()
        for (number, operations) in traces.enumerated() {
            let track = try await WorkloadTrack(number, of: store, run: run)
            reading.facts.append(try await track.facts(of: operations))
        }
        reading.waitingInAll = try await store.waitingInAll()
        try await store.close()
        return reading
    }

    /// Repeats the answered operations on a copy of the store, and reads the copy.
    ///
    /// - Parameter unanswered: The tracks whose operation without an answer is repeated as well.
    private func repeating(_ log: WorkloadLog, unanswered: Set<Int>) async throws -> Reading {
        try await kind.maker.copy(before, to: repeated)
        let store = try await WorkloadStore(at: repeated, of: kind.maker)
        try await withThrowingTaskGroup(of: Void.self) { [run, seed] group in
            for (number, track) in log.tracks.enumerated() {
                group.addTask {
                    var again = try await WorkloadTrack(number, of: store, run: run)
                    for (operation, answer) in track.answered {
                        let repeated = try await again.perform(operation)
                        #expect(repeated == answer, "seed \(seed), operation \(operation.number), \(operation.kind)")
                    }
                    if unanswered.contains(number), let last = track.unanswered { _ = try await again.perform(last) }
                }
            }
            try await group.waitForAll()
        }
        try await store.close()
        return try await read(repeated)
    }
}

/// The output of the process.
struct WorkloadLog {
    struct Track {
        var answered: [(operation: WorkloadOperation, answer: String)] = []
        /// The operation that had begun last.
        var unanswered: WorkloadOperation?
    }

    private(set) var tracks: [Track]

    init(_ lines: [String], seed: UInt64) throws {
        tracks = Array(repeating: Track(), count: WorkloadOperation.tracks)
        for line in lines where line != "opened" {
            let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count > 1, let number = Int64(parts[1]) else { throw Program.Ended(description: line) }
            let operation = WorkloadOperation(seed: seed, number: number)
            switch parts[0] {
            case "begin":
                tracks[operation.track].unanswered = operation
            case "end":
                tracks[operation.track].unanswered = nil
                tracks[operation.track].answered.append((operation, parts.count > 2 ? String(parts[2]) : ""))
            default:
                throw Program.Ended(description: line)
            }
        }
    }
}
