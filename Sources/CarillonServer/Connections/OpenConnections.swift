import NIOCore
import Synchronization

/// The listeners that are open, and the connections that they accepted: what a stop must end.
final class OpenConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any NIOCore.Channel] = [:]
        var isStopping = false
    }

    private let state = Mutex(State())
    private let end = AsyncStream.makeStream(of: Void.self)

    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Adds a listener or a connection until it closes.
    func add(_ channel: any NIOCore.Channel) {
        let id = ObjectIdentifier(channel)
        let isStopping = state.withLock { state in
            state.channels[id] = channel
            return state.isStopping
        }
        channel.closeFuture.whenComplete { _ in self.remove(id) }
        if isStopping { Self.stop(channel) }
    }

    private func remove(_ id: ObjectIdentifier) {
        let isOver = state.withLock { state in
            state.channels[id] = nil
            return state.isStopping && state.channels.isEmpty
        }
        if isOver { end.continuation.finish() }
    }

    /// Closes the listeners, and has each connection end when it has answered.
    func stop() {
        let channels = state.withLock { state in
            state.isStopping = true
            return Array(state.channels.values)
        }
        for channel in channels { Self.stop(channel) }
        if channels.isEmpty { end.continuation.finish() }
    }

    /// A listener closes at this event, by the handler that NIO adds to it.
    private static func stop(_ channel: any NIOCore.Channel) {
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    /// Returns when everything has closed after ``stop()``, or the task is cancelled.
    func allClosed() async { for await _ in end.stream {} }

    /// Adds what a listener accepts.
    final class Collector: ChannelInboundHandler {
        typealias InboundIn = any NIOCore.Channel

        private let connections: OpenConnections

        init(_ connections: OpenConnections) { self.connections = connections }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            connections.add(Self.unwrapInboundIn(data))
            context.fireChannelRead(data)
        }
    }
}
