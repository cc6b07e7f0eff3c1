import NIOCore

/// A server that runs, as the measurements see it: subscribers by number, and messages to them.
protocol PushServer: Sendable {
    var process: ServerProcess { get }
    var address: SocketAddress { get }

    func subscription(_ index: Int) -> Subscription
    /// The request that sends a message to a subscriber.
    func message(_ body: ByteBuffer, to index: Int) -> ByteBuffer
    func isAccepted(_ answer: HTTPAnswer) -> Bool
    /// What a subscriber's frame has of this body.
    func text(of body: String) -> String
}

extension PushServer {
    /// Ready-made requests to so many subscribers.
    func messages(_ body: ByteBuffer, to count: Int) -> [ByteBuffer] {
        (0..<count).map { message(body, to: $0) }
    }

    func usage() throws -> ProcessUsage { try ProcessUsage(of: process.pid) }
}
