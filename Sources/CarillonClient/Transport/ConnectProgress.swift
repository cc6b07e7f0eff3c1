import NIOCore
import Synchronization

/// The progress of one attempt to connect. The caller can abandon the attempt at any point without waiting for its end.
final class ConnectProgress: Sendable {
    private struct State {
        var channels: [any NIOCore.Channel] = []
        var hasConnected = false
        var isUpgraded = false
        var status: Int?
        var abandonment: (any Error)?
        var fail: (@Sendable (any Error) -> Void)?
    }

    private let state = Mutex(State())

    var hasConnected: Bool { state.withLock { $0.hasConnected } }
    var isUpgraded: Bool { state.withLock { $0.isUpgraded } }

    /// The status of the response to a WebSocket handshake; nil before the response.
    var status: Int? { state.withLock { $0.status } }

    func answered(status: Int) { state.withLock { $0.status = status } }

    /// Records that the attempt tries one of the host's addresses.
    func began(on channel: any NIOCore.Channel) {
        let isAbandoned = state.withLock { state in
            state.channels.append(channel)
            return state.abandonment != nil
        }
        if isAbandoned { channel.close(promise: nil) }
    }

    func connected() { state.withLock { $0.hasConnected = true } }

    /// Records that the server accepted the upgrade. Returns false if the attempt was abandoned before. Otherwise the attempt
    /// cannot be abandoned any more.
    func upgraded() -> Bool {
        state.withLock { state in
            guard state.abandonment == nil else { return false }
            state.isUpgraded = true
            state.channels = []
            return true
        }
    }

    /// Waits for the outcome, or until the attempt is abandoned.
    func first<Value: Sendable>(of outcome: EventLoopFuture<Value>, on loop: any EventLoop) async throws -> Value {
        let promise = loop.makePromise(of: Value.self)
        // A completed promise keeps its first value.
        let abandonment = state.withLock { state in
            state.fail = { promise.fail($0) }
            return state.abandonment
        }
        if let abandonment { promise.fail(abandonment) }
        outcome.cascade(to: promise)
        return try await promise.futureResult.get()
    }

    func abandon(_ error: any Error) {
        let (channels, fail) = state.withLock { state in
            guard !state.isUpgraded, state.abandonment == nil else {
                return ([any NIOCore.Channel](), (@Sendable (any Error) -> Void)?.none)
            }
            state.abandonment = error
            return (state.channels, state.fail)
        }
        fail?(error)
        for channel in channels { channel.close(promise: nil) }
    }
}
