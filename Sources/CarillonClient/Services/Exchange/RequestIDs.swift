import CarillonWire
import Synchronization

/// The newest thousand ids that the app made and has not used. Each can be cancelled before its use.
final class RequestIDs: Sendable {
    private struct State {
        var order: [String] = []
        var cancelled: Set<String> = []
    }

    static let most = 1000
    private let state = Mutex(State())

    /// Makes an id. It can be cancelled until 1,000 newer unused ids were made.
    func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let id = ServiceRequestID.random(using: &generator).description
        state.withLock { state in
            state.order.append(id)
            guard state.order.count > Self.most else { return }
            state.cancelled.remove(state.order.removeFirst())
        }
        return id
    }

    /// - Returns: False if the id was not made here, or is in use.
    func cancel(_ id: String) -> Bool {
        state.withLock { state in
            guard state.order.contains(id) else { return false }
            state.cancelled.insert(id)
            return true
        }
    }

    /// Whether an id was made here, and was neither used nor cancelled.
    func isOpen(_ id: String) -> Bool { state.withLock { $0.order.contains(id) && !$0.cancelled.contains(id) } }

    /// The state of an id at the beginning of a request.
    enum Use {
        case fresh
        case cancelled
        /// The id was made elsewhere, or used before.
        case unknown
    }

    /// Marks an id as used by a request.
    func use(_ id: String) -> Use {
        state.withLock { state in
            guard let place = state.order.lastIndex(of: id) else { return .unknown }
            state.order.remove(at: place)
            return state.cancelled.remove(id) == nil ? .fresh : .cancelled
        }
    }
}
