import CarillonCore
import Dispatch
import GRDB
import Synchronization

/// Answers many questions in few reads: what is asked while others are being answered shares the next transaction.
///
/// Two of them are under way at most, so that a long one does not keep all others waiting. A question sees everything
/// that was committed before it was asked.
final class ReadGroup: Sendable {
    private typealias Job = @Sendable (Result<Database, any Error>) -> Void

    private struct State {
        var jobs: [Job] = []
        var lanes = 0
    }

    private static let laneLimit = 2
    private static let groupLimit = 64

    private let reader: any DatabaseReader
    private let threads = DispatchQueue(label: "carillon.reads", attributes: .concurrent)
    private let state = Mutex(State())

    init(reader: any DatabaseReader) { self.reader = reader }

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
        let startsLane = state.withLock { state in
            state.jobs.append(job)
            guard state.lanes < Self.laneLimit else { return false }
            state.lanes += 1
            return true
        }
        if startsLane { threads.async { self.drain() } }
    }

    private func drain() {
        while true {
            let jobs = state.withLock { state in
                let jobs = Array(state.jobs.prefix(Self.groupLimit))
                state.jobs.removeFirst(jobs.count)
                if jobs.isEmpty { state.lanes -= 1 }
                return jobs
            }
            if jobs.isEmpty { return }
            var answered = 0
            do {
                try reader.read { db in
                    for job in jobs {
                        answered += 1
                        job(.success(db))
                    }
                }
            } catch {
                for job in jobs[answered...] { job(.failure(error)) }
            }
        }
    }
}
