import CarillonCore
import CarillonWire
import Synchronization

/// Stores everything, unless the test sets another answer, or delays a commit.
final class ScriptedInboxStore: InboxStore {
    /// One commit that does not end before the test allows it.
    struct Hold: Sendable {
        fileprivate let beginning = AsyncStream<Void>.makeStream()
        fileprivate let ending = AsyncStream<Void>.makeStream()

        func begun() async { for await _ in beginning.stream { return } }
        func end() { ending.continuation.finish() }
    }

    typealias Answer = @Sendable ([InboxOperation]) throws -> [InboxResult]

    private struct State {
        var commits: [[InboxOperation]] = []
        var hold: Hold?
        var answer: Answer?
        var found: Result<Arrival?, StoreFault> = .success(nil)
        var arrivals: [PageRequest] = []
        var onArrival: (@Sendable (_ number: Int) async -> Void)?
    }

    private let state = Mutex(State())

    var commits: [[InboxOperation]] { state.withLock { $0.commits } }
    var answer: Answer? {
        get { state.withLock { $0.answer } }
        set { state.withLock { $0.answer = newValue } }
    }

    /// The result of the next read of an arriving device.
    var found: Result<Arrival?, StoreFault> {
        get { state.withLock { $0.found } }
        set { state.withLock { $0.found = newValue } }
    }

    /// The number of reads of arriving devices.
    var arrivals: Int { loads.count }

    /// The inboxes that were to be read.
    var loads: [PageRequest] { state.withLock { $0.arrivals } }

    /// Runs the work after each read of an arriving device, before the read is answered.
    func onArrival(_ work: @escaping @Sendable (_ number: Int) async -> Void) { state.withLock { $0.onArrival = work } }

    func hold() -> Hold {
        let hold = Hold()
        state.withLock { $0.hold = hold }
        return hold
    }

    func commit(_ operations: [InboxOperation]) async throws -> [InboxResult] {
        let (hold, answer) = state.withLock { state in
            state.commits.append(operations)
            defer { state.hold = nil }
            return (state.hold, state.answer)
        }
        if let hold {
            hold.beginning.continuation.yield()
            for await _ in hold.ending.stream {}
        }
        return try answer?(operations) ?? operations.map { _ in .stored(replaced: nil) }
    }

    struct NotAsked: Error {}

    func waiting(
        device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp
    ) async throws -> [Envelope]? { throw NotAsked() }
    func arrival(of name: DeviceName, _ load: PageRequest, at now: Timestamp) async throws -> Arrival? {
        let (found, number, then) = state.withLock { state in
            state.arrivals.append(load)
            return (state.found, state.arrivals.count, state.onArrival)
        }
        let arrival = try found.get()
        await then?(number)
        return arrival
    }
    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int { throw NotAsked() }
    func waitingInAll() async throws -> InboxUsage.Waiting { throw NotAsked() }
    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord? { throw NotAsked() }
    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept {
        throw NotAsked()
    }
}
