import NIOCore
import Synchronization

/// The open listeners and their connections, which a stop must end.
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

    /// Closes the listeners. Each connection ends after its present answer.
    func stop() {
        let channels = state.withLock { state in
            state.isStopping = true
            return Array(state.channels.values)
        }
        for channel in channels { Self.stop(channel) }
        if channels.isEmpty { end.continuation.finish() }
    }

    /// NIO adds a handler to listeners that closes them at this event.
    private static func stop(_ channel: any NIOCore.Channel) {
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    /// Returns when all listeners and connections are closed after ``stop()``, or when the task is cancelled.
    func allClosed() async { for await _ in end.stream {} }

    /// Adds the connections that a listener accepts.
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
