import CarillonWire
import Synchronization

/// The ids that the app made and has not used: the newest thousand. Each can be cancelled before its use.
final class RequestIDs: Sendable {
    private struct State {
        var order: [String] = []
        var cancelled: Set<String> = []
    }

    static let most = 1000
    private let state = Mutex(State())

    /// Makes an id, which can be cancelled until 1,000 others were made and not used.
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

    /// - Returns: False for an id that was not made here, or that is in use.
    func cancel(_ id: String) -> Bool {
        state.withLock { state in
            guard state.order.contains(id) else { return false }
            state.cancelled.insert(id)
            return true
        }
    }

    /// Whether an id was made here, and was neither used nor cancelled.
    func isOpen(_ id: String) -> Bool { state.withLock { $0.order.contains(id) && !$0.cancelled.contains(id) } }

    /// What is known of an id with which a request begins.
    enum Use {
        case fresh
        case cancelled
        /// The id was made elsewhere, or used before.
        case unknown
    }

    /// A request begins with an id.
    func use(_ id: String) -> Use {
        state.withLock { state in
            guard let place = state.order.lastIndex(of: id) else { return .unknown }
            state.order.remove(at: place)
            return state.cancelled.remove(id) == nil ? .fresh : .cancelled
        }
    }
}
