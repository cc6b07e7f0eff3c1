import NIOCore

/// An nginx with Nchan that runs.
struct NchanPeer: PushServer {
    let process: ServerProcess
    let address: SocketAddress
    /// All subscribers on one channel, in place of one channel each.
    var isShared = false
    /// Subscribers begin with what was published before they came.
    var fromOldest = false

    func subscription(_ index: Int) -> Subscription {
        let door = fromOldest ? "all" : "new"
        return Subscription(
            handshake: HTTPRequest.handshake("/\(door)/channel\(isShared ? 0 : index)"), beginning: .handshake)
    }

    func message(_ body: ByteBuffer, to index: Int) -> ByteBuffer {
        HTTPRequest.bytes("POST", "/pub/channel\(isShared ? 0 : index)", body: body)
    }

    /// 201: somebody was subscribed; 202: nobody was.
    func isAccepted(_ answer: HTTPAnswer) -> Bool { answer.status == 201 || answer.status == 202 }

    func text(of body: String) -> String { body }
}
