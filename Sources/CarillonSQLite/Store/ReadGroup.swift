import CarillonCore
import Dispatch
import GRDB
import Synchronization

/// The groups of the store's reading connections. Each kind of read has its own connections, so that slow reads delay only reads
/// of the same kind.
struct ReadGroups: Sendable {
    /// Reads of credentials, of channels by their token, and of outcomes of messages.
    let lookUps: ReadGroup
    /// Reads of a device that sends a hello or polls, and then of its inbox. ``InboxIndex`` is read between both, before the
    /// transaction of the second read.
    let arrivals: ReadGroup
    private let pages: ReadGroup
    private let largePages: ReadGroup
    /// Reads of many rows for one request: lists, counts and the devices of an audience.
    let scans: ReadGroup

    /// The number of connections that can read at the same time.
    static let count = 7
    private static let largeBytes = 256 << 10

    init(reader: any DatabaseReader, gate: StoreGate) {
        lookUps = ReadGroup(reader: reader, gate: gate, readers: 2)
        arrivals = ReadGroup(reader: reader, gate: gate, readers: 2, inOneTransaction: false)
        pages = ReadGroup(reader: reader, gate: gate, readers: 1)
        largePages = ReadGroup(reader: reader, gate: gate, readers: 1)
        scans = ReadGroup(reader: reader, gate: gate, readers: 1)
    }

    /// Returns the group for pages of envelopes with at most this number of bytes.
    func pages(of bytes: Int) -> ReadGroup { bytes > Self.largeBytes ? largePages : pages }
}

/// Runs many reads in few transactions. Reads that arrive while others run share the next transaction. A read sees everything
/// that was committed before it was requested.
final class ReadGroup: Sendable {
    private typealias Job = @Sendable (Result<Database, any Error>) -> Void

    private struct State {
        var jobs: [Job] = []
        var readers = 0
    }

    private static let groupLimit = 64

    private let reader: any DatabaseReader
    private let gate: StoreGate
    private let readerLimit: Int
    private let inOneTransaction: Bool
    private let threads = DispatchQueue(label: "carillon.reads", attributes: .concurrent)
    private let state = Mutex(State())

    /// - Parameters:
    ///   - readers: The maximum number of concurrent transactions.
    ///   - inOneTransaction: If false, each statement sees everything that was committed before it.
    init(reader: any DatabaseReader, gate: StoreGate = StoreGate(), readers: Int, inOneTransaction: Bool = true) {
        self.reader = reader
        self.gate = gate
        readerLimit = readers
        self.inOneTransaction = inOneTransaction
    }

    /// - Throws: ``StoreFault``.
    func run<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        do {
            return try await withCheckedThrowingContinuation { continuation in
                enqueue { database in continuation.resume(with: Result { try work(try database.get()) }) }
            }
        } catch {
            throw StoreFault(error)
        }
    }

    private func enqueue(_ job: @escaping Job) {
        do { try gate.enter() } catch { return job(.failure(error)) }
        let startsReader = state.withLock { state in
            state.jobs.append(job)
            guard state.readers < readerLimit else { return false }
            state.readers += 1
            return true
        }
        if startsReader { threads.async { self.drain() } }
    }

    private func drain() {
        while true {
            let jobs = state.withLock { state in
                let jobs = Array(state.jobs.prefix(Self.groupLimit))
                state.jobs.removeFirst(jobs.count)
                if jobs.isEmpty { state.readers -= 1 }
                return jobs
            }
            if jobs.isEmpty { return }
            var answered = 0
            do {
                try read { db in
                    for job in jobs {
                        answered += 1
                        job(.success(db))
                        gate.leave()
                    }
                }
            } catch {
                for job in jobs[answered...] {
                    job(.failure(error))
                    gate.leave()
                }
            }
        }
    }

    private func read(_ work: (Database) throws -> Void) throws {
        if inOneTransaction { try reader.read(work) } else { try reader.unsafeRead(work) }
    }
}
