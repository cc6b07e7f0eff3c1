import NIOCore
import NIOHTTP1

/// A whole answer to one request.
struct HTTPAnswer: Sendable {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders
    var body = ByteBuffer()
    /// Of the body, in bytes; nil in an answer to HEAD when the body's length is not known.
    var length: Int?

    init(status: HTTPResponseStatus, headers: HTTPHeaders, body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.headers = headers
        self.body = body
        length = body.readableBytes
    }
}
