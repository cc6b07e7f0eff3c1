import CarillonCore
import CarillonWire
import GRDB
import Synchronization

/// Caches unfinished requests as the last commit left them, so that a step of a request reads no row.
///
/// The store has one writer. A transaction that changes a request removes it from the cache, and the commit of the transaction
/// stores it there again. A request that is not cached is read. A transaction that fails clears the cache.
final class RequestMemory: Sendable {
    private struct State {
        var requests: LRUCache<RequestSerial, ServiceRequest>
        var serials: LRUCache<ServiceRequestID, RequestSerial>
        /// Requests with the changes of the present transaction.
        var uncommitted: [RequestSerial: ServiceRequest] = [:]
    }

    private let state: Mutex<State>

    init(capacity: Int = 4096) {
        state = Mutex(State(requests: LRUCache(capacity: capacity), serials: LRUCache(capacity: capacity)))
    }

    /// Returns the request of an id if it is cached and no transaction is changing it.
    func committed(_ id: ServiceRequestID) -> ServiceRequest? {
        state.withLock { state in
            guard let serial = state.serials[id], let request = state.requests[serial], request.id == id else { return nil }
            return request
        }
    }

    // MARK: In a transaction

    /// Returns a request as the present transaction sees it, if it is cached.
    func request(_ serial: RequestSerial) -> ServiceRequest? {
        state.withLock { $0.uncommitted[serial] ?? $0.requests[serial] }
    }

    /// Caches an unfinished request that the present transaction read or wrote.
    func note(_ request: ServiceRequest, in db: Database) {
        let isFirst = state.withLock { state in
            let isFirst = state.uncommitted.isEmpty
            state.requests[request.serial] = nil
            state.uncommitted[request.serial] = request
            return isFirst
        }
        if isFirst {
            db.afterNextTransaction { [self] _ in
                commit()
            } onRollback: { [self] _ in
                forgetAll()
            }
        }
    }

    /// Applies a change of a row to the cache. A request that the change finishes is removed.
    func note(_ change: RequestChanges.Change, of serial: RequestSerial, in db: Database) {
        guard change.finish == nil, var request = request(serial) else { return forget(serial) }
        request.state = change.state
        request.isUnwanted = change.isUnwanted
        note(request, in: db)
    }

    func forget(_ serial: RequestSerial) {
        state.withLock { state in
            state.requests[serial] = nil
            state.uncommitted[serial] = nil
        }
    }

    func forgetAll() {
        state.withLock { state in
            state.requests.removeAll()
            state.serials.removeAll()
            state.uncommitted = [:]
        }
    }

    private func commit() {
        state.withLock { state in
            for (serial, request) in state.uncommitted {
                state.requests[serial] = request
                state.serials[request.id] = serial
            }
            state.uncommitted = [:]
        }
    }
}
