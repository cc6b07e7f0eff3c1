import NIOCore

/// Makes the bytes of HTTP/1.1 requests.
enum HTTPRequest {
    static func bytes(_ method: String, _ path: String, headers: [String] = [], body: ByteBuffer? = nil) -> ByteBuffer {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for header in headers { text += header + "\r\n" }
        if let body { text += "Content-Length: \(body.readableBytes)\r\n" }
        var buffer = ByteBuffer(string: text + "\r\n")
        if let body { buffer.writeImmutableBuffer(body) }
        return buffer
    }

    /// Makes a WebSocket handshake. Its key is the example of RFC 6455, because the response is not checked.
    static func handshake(_ path: String) -> ByteBuffer {
        bytes(
            "GET", path,
            headers: [
                "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            ])
    }
}
