import Crypto
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The server's side of the opening handshake (RFC 6455 section 4.2.2).
enum SocketHandshake {
    static func answer(to head: HTTPRequestHead) -> HTTPResponseHead {
        let key = head.headers.first(name: "sec-websocket-key") ?? ""
        var headers: HTTPHeaders = [
            "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": accept(key),
        ]
        // Mozilla's clients offer this; a client that insists on an answer gets one.
        if head.headers[canonicalForm: "sec-websocket-protocol"].contains("push-notification") {
            headers.add(name: "sec-websocket-protocol", value: "push-notification")
        }
        return HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
    }

    static func accept(_ key: String) -> String {
        Data(Insecure.SHA1.hash(data: Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8))).base64EncodedString()
    }
}
