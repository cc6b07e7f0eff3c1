import CarillonCore
import CarillonServer
import Synchronization

/// The events of a scenario, in milliseconds since its beginning.
final class ScenarioRecord: Sendable {
    enum Stage: Sendable {
        case running
        /// Nothing more is sent. Phones that are away connect again, and receive the rest.
        case settling
        case over
    }

    struct Move: Sendable, CustomStringConvertible {
        var shard: Shard
        /// The place of the home that moved the shard, or tried to.
        var from: Int
        var began: Int64
        var ended: Int64
        var result: String

        var description: String { "\(began)-\(ended) from home \(from): \(result)" }
    }

    private struct State {
        var stage = Stage.running
        var moves: [Move] = []
        var faults: [String] = []
        var counts: [String: Int] = [:]
        var lag: Int64 = 0
        /// The shards of devices that were registered during the scenario, the newest last.
        var newShards: [Shard] = []
    }

    /// Random choices depend on it.
    let seed: UInt64
    private let state = Mutex(State())
    private let start = TimeSource.system.now().milliseconds

    init(seed: UInt64) { self.seed = seed }

    func now() -> Int64 { TimeSource.system.now().milliseconds - start }

    // MARK: The stage

    var stage: Stage { state.withLock { $0.stage } }

    /// Whether senders continue.
    var isRunning: Bool { stage == .running && !Task.isCancelled }

    /// Whether everything ends.
    var isOver: Bool { stage == .over || Task.isCancelled }

    func begin(_ stage: Stage) { state.withLock { $0.stage = stage } }

    // MARK: Events

    func count(_ name: String, by number: Int = 1) { state.withLock { $0.counts[name, default: 0] += number } }

    var counts: [String: Int] { state.withLock { $0.counts } }

    /// Something happened that must not happen.
    func fault(_ text: String) {
        let at = now()
        state.withLock { $0.faults.append("at \(at): \(text)") }
    }

    var faults: [String] { state.withLock { $0.faults } }

    func add(_ move: Move) { state.withLock { $0.moves.append(move) } }

    /// Returns the moves of a shard that overlap a time.
    func moves(of shard: Shard, from: Int64, to: Int64) -> [Move] {
        state.withLock { $0.moves.filter { $0.shard == shard && $0.ended >= from && $0.began <= to } }
    }

    /// Notes the shard of a new device, so that it moves, too.
    func add(_ shard: Shard) { state.withLock { $0.newShards.append(shard) } }

    /// The shards of the devices that were registered last.
    var newestShards: [Shard] { state.withLock { Array($0.newShards.suffix(3)) } }

    // MARK: Lateness

    #if CARILLON_SANITIZED
        private static let allowance: Int64 = 60_000
    #else
        private static let allowance: Int64 = 5000
    #endif

    /// The longest time of any step. It grows by the delay of the machine itself.
    var allowance: Int64 { Self.allowance + state.withLock { $0.lag } }

    /// The maximum delay of this process for due work.
    var lag: Int64 { state.withLock { $0.lag } }

    /// Measures the lag, until the scenario ends.
    func measureLag() async {
        while !isOver {
            let due = now() + 20
            try? await Task.sleep(for: .milliseconds(20))
            let late = now() - due
            state.withLock { $0.lag = max($0.lag, late) }
        }
    }
}
