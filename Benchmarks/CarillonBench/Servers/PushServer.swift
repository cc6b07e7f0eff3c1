import NIOCore

/// A running server for the measurements: its subscribers by number, and the messages to them.
protocol PushServer: Sendable {
    var process: ServerProcess { get }
    var address: SocketAddress { get }

    func subscription(_ index: Int) -> Subscription
    /// The request that sends a message to a subscriber.
    func message(_ body: ByteBuffer, to index: Int) -> ByteBuffer
    func isAccepted(_ answer: HTTPAnswer) -> Bool
    /// Returns the form that the body has in a subscriber's frame.
    func text(of body: String) -> String
}

extension PushServer {
    /// Returns prepared requests to the given number of subscribers.
    func messages(_ body: ByteBuffer, to count: Int) -> [ByteBuffer] {
        (0..<count).map { message(body, to: $0) }
    }

    func usage() throws -> ProcessUsage { try ProcessUsage(of: process.pid) }
}
