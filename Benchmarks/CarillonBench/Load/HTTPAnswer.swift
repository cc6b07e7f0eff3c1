import NIOCore

/// An HTTP/1.1 response with a `Content-Length`, or without a body.
struct HTTPAnswer: Sendable {
    var status: Int
    var head: ByteBuffer
    var body: ByteBuffer

    /// Removes the first response from a buffer. Returns nil while it is not complete.
    static func take(from buffer: inout ByteBuffer) -> HTTPAnswer? {
        guard let end = buffer.offset(of: "\r\n\r\n") else { return nil }
        let headLength = end + 4
        let status = buffer.number(at: 9)
        var bodyLength = 0
        if let place = buffer.offset(of: "\r\ncontent-length:"), place < end { bodyLength = buffer.number(at: place + 17) }
        guard buffer.readableBytes >= headLength + bodyLength, let head = buffer.readSlice(length: headLength),
            let body = buffer.readSlice(length: bodyLength)
        else { return nil }
        return HTTPAnswer(status: status, head: head, body: body)
    }

    /// Whether Carillon reports that the accepted message is waiting.
    var isWaiting: Bool { head.offset(of: "\r\ncarillon-outcome: waiting") != nil }
    var isAcknowledged: Bool { head.offset(of: "\r\ncarillon-outcome: acknowledged") != nil }

    var description: String {
        "\(status) \(String(buffer: body).prefix(200))"
    }
}
