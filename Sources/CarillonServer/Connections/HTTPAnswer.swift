import NIOCore
import NIOHTTP1

/// A complete response to one request.
struct HTTPAnswer: Sendable {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders
    var body = ByteBuffer()
    /// The length of the body, in bytes; nil in a response to HEAD if the length is not known.
    var length: Int?

    init(status: HTTPResponseStatus, headers: HTTPHeaders, body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.headers = headers
        self.body = body
        length = body.readableBytes
    }
}
