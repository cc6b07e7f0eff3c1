import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Removals on the server that run beside the requests that caused them. They end when this object is released.
final class ServerRemovals: Sendable {
    private struct State {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var next: UInt64 = 0
    }

    private static let limit: TimeInterval = 600
    private let server: ServiceAPI
    private let logger: Logger
    private let state = Mutex(State())

    init(server: ServiceAPI, logger: Logger) {
        self.server = server
        self.logger = logger
    }

    deinit {
        for task in state.withLock({ $0.tasks }).values { task.cancel() }
    }

    /// Removes resources from the server, one after the other, with retries after lost connections and faults, each for up to ten
    /// minutes. After that the server removes them when they expire.
    func begin(_ paths: [String]) {
        guard !paths.isEmpty else { return }
        state.withLock { state in
            state.next += 1
            let number = state.next
            // The task ends with the work, or with this object, which the task does not retain.
            state.tasks[number] = Task { [weak self, server, logger] in
                for path in paths where !Task.isCancelled {
                    do {
                        try await Self.remove(path, at: server)
                    } catch {
                        // The server rejects the removal of a resource that was removed already or delivered.
                        logger.debug("nothing was removed at the server", metadata: ["reason": "\(error)"])
                    }
                }
                self?.ended(number)
            }
        }
    }

    /// Removes a resource from the server, with retries after lost connections and faults, for up to ten minutes.
    private static func remove(_ path: String, at server: ServiceAPI) async throws {
        _ = try await server.persist(until: Date.now + limit, .delete, path)
    }

    /// Removes a resource from the server, with retries after lost connections and faults, for up to ten minutes.
    ///
    /// - Returns: Whether the server responded.
    static func isRemoved(_ path: String, at server: ServiceAPI) async -> Bool {
        do {
            try await remove(path, at: server)
            return true
        } catch {
            // The server rejects the removal of a resource that was removed already or delivered.
            return (error as? ServiceError).map { $0.code != .deadlineExceeded } ?? false
        }
    }

    private func ended(_ number: UInt64) {
        // The removed task is returned from the closure, so that it is not released inside the lock.
        _ = state.withLock { $0.tasks.removeValue(forKey: number) }
    }
}
