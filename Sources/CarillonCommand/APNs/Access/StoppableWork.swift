import CarillonAPNs
import Synchronization
import UnixSignals

/// Runs work with a client that the user can stop. Ctrl-C or SIGTERM shuts the client down, which ends the work.
enum StoppableWork {
    private final class StopRequest: Sendable {
        let isThere = Mutex(false)
    }

    /// - Throws: The error of the work, or the fault if the user stopped it.
    static func perform<Value>(
        with client: APNsClient, otherwise fault: CommandFault, _ work: () async throws -> Value
    ) async throws -> Value {
        let request = StopRequest()
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await _ in signals {
                    request.isThere.withLock { $0 = true }
                    return await client.shutDown(drains: false)
                }
            }
            defer { group.cancelAll() }
            do {
                let value = try await work()
                if request.isThere.withLock({ $0 }) { throw fault }
                return value
            } catch {
                throw request.isThere.withLock { $0 } ? fault : error
            }
        }
    }
}
