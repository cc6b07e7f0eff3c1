import NIOCore

/// A running nginx with Nchan.
struct NchanPeer: PushServer {
    let process: ServerProcess
    let address: SocketAddress
    /// Whether all subscribers use one channel, instead of one channel each.
    var isShared = false
    /// Whether subscribers start with the messages that were published before they connected.
    var fromOldest = false

    func subscription(_ index: Int) -> Subscription {
        let door = fromOldest ? "all" : "new"
        return Subscription(
            handshake: HTTPRequest.handshake("/\(door)/channel\(isShared ? 0 : index)"), beginning: .handshake)
    }

    func message(_ body: ByteBuffer, to index: Int) -> ByteBuffer {
        HTTPRequest.bytes("POST", "/pub/channel\(isShared ? 0 : index)", body: body)
    }

    /// Nchan returns 201 if there was a subscriber, and 202 if there was none.
    func isAccepted(_ answer: HTTPAnswer) -> Bool { answer.status == 201 || answer.status == 202 }

    func text(of body: String) -> String { body }
}
