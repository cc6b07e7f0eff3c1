import CarillonBasics
import CarillonWire
import Crypto
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The server's side of the opening handshake (RFC 6455 section 4.2).
enum SocketHandshake {
    enum Reading: Equatable {
        case accepted
        case refused(Refusal)
        /// The request is not a handshake that the server accepts. The routes return the reason.
        case otherRequest
    }

    static func read(_ head: HTTPRequestHead, from origins: AllowedOrigins) -> Reading {
        let headers = head.headers
        guard head.method == .GET, headers.contains(name: "upgrade"), head.uri.prefix(while: { $0 != "?" }) == "/",
            head.version == .http1_1,
            headers[canonicalForm: "upgrade"].contains(where: { $0.lowercased() == "websocket" }),
            headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" }),
            headers["sec-websocket-version"] == ["13"],
            !headers.contains(name: "transfer-encoding"), headers.first(name: "content-length") ?? "0" == "0"
        else { return .otherRequest }
        let keys = headers["sec-websocket-key"]
        guard keys.count == 1, keys[0].utf8.count == 24, Base64URL.decodeLeniently(keys[0])?.count == 16 else {
            return .refused(Refusal(.requestInvalid, "A Sec-WebSocket-Key is 16 bytes in base64, and comes once."))
        }
        guard origins.admitSocket(of: headers["origin"]) else {
            return .refused(
                Refusal(
                    .originForbidden, "Pages of this origin may not connect; the operator can allow it (allowed-origins)."))
        }
        return .accepted
    }

    static func answer(to head: HTTPRequestHead) -> HTTPResponseHead {
        let key = head.headers.first(name: "sec-websocket-key") ?? ""
        var headers: HTTPHeaders = [
            "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": accept(key),
        ]
        // Mozilla's clients offer this protocol, and a client can require that the server selects it.
        if head.headers[canonicalForm: "sec-websocket-protocol"].contains("push-notification") {
            headers.add(name: "sec-websocket-protocol", value: "push-notification")
        }
        return HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
    }

    static func accept(_ key: String) -> String {
        Data(Insecure.SHA1.hash(data: Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8))).base64EncodedString()
    }
}
