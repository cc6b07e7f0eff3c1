import NIOCore
import Synchronization

/// How far one attempt to connect has come, so that it can be given up at any point without waiting for it.
final class ConnectProgress: Sendable {
    private struct State {
        var channels: [any NIOCore.Channel] = []
        var hasConnected = false
        var isUpgraded = false
        var status: Int?
        var abandonment: (any Error)?
        var giveUp: (@Sendable (any Error) -> Void)?
    }

    private let state = Mutex(State())

    var hasConnected: Bool { state.withLock { $0.hasConnected } }
    var isUpgraded: Bool { state.withLock { $0.isUpgraded } }

    /// The status of the answer to a WebSocket handshake; nil before it is known.
    var status: Int? { state.withLock { $0.status } }

    func answered(status: Int) { state.withLock { $0.status = status } }

    /// One of the host's addresses is being tried.
    func began(on channel: any NIOCore.Channel) {
        let isAbandoned = state.withLock { state in
            state.channels.append(channel)
            return state.abandonment != nil
        }
        if isAbandoned { channel.close(promise: nil) }
    }

    func connected() { state.withLock { $0.hasConnected = true } }

    /// The server accepted. Answers false when the attempt was given up before; otherwise it cannot be any more.
    func upgraded() -> Bool {
        state.withLock { state in
            guard state.abandonment == nil else { return false }
            state.isUpgraded = true
            state.channels = []
            return true
        }
    }

    /// Waits for the outcome, or for the attempt to be given up.
    func first<Value: Sendable>(of outcome: EventLoopFuture<Value>, on loop: any EventLoop) async throws -> Value {
        let promise = loop.makePromise(of: Value.self)
        // A promise that is fulfilled keeps its first value.
        let abandonment = state.withLock { state in
            state.giveUp = { promise.fail($0) }
            return state.abandonment
        }
        if let abandonment { promise.fail(abandonment) }
        outcome.cascade(to: promise)
        return try await promise.futureResult.get()
    }

    func abandon(_ error: any Error) {
        let (channels, giveUp) = state.withLock { state in
            guard !state.isUpgraded, state.abandonment == nil else {
                return ([any NIOCore.Channel](), (@Sendable (any Error) -> Void)?.none)
            }
            state.abandonment = error
            return (state.channels, state.giveUp)
        }
        giveUp?(error)
        for channel in channels { channel.close(promise: nil) }
    }
}
