import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A server of the HTTP API with the answers of a test, one request a connection. It can be a relay before another server.
final class HostileServer: Sendable {
    struct Answer: Sendable {
        var status = 200
        var headers: [(name: String, value: String)] = []
        var body = ""
        /// Whether the answer has the signs of a Carillon server.
        var isNamed = true
    }

    private let listener: Int32
    let address: String

    struct Fault: Error {}

    /// - Parameter answer: Gets the method and the path with its query.
    convenience init(_ answer: @escaping @Sendable (String, String) -> Answer) throws {
        try self.init(before: 0) { method, path in answer(method, path) }
    }

    /// - Parameters:
    ///   - port: The port of the server that gets the requests without an answer. They must have `Connection: close`.
    ///   - answer: Gets the method and the path with its query.
    init(before upstream: Int, _ answer: @escaping @Sendable (String, String) -> Answer?) throws {
        let port = try LiveServer.freePort()
        let listener = Self.makeSocket()
        self.listener = listener
        address = "http://127.0.0.1:\(port)"
        let isBound = Self.withAddress(of: port) { bind(listener, $0, $1) == 0 }
        guard isBound, listen(listener, 16) == 0 else { throw Fault() }
        // Ends when the listener is shut down.
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { break }
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                // A connection that stays open, such as a WebSocket, must not delay the others.
                Thread.detachNewThread {
                    Self.serve(connection, upstream, answer)
                    close(connection)
                }
            }
            close(listener)
        }
    }

    deinit { shutdown(listener, CInt(SHUT_RDWR)) }

    private static func makeSocket() -> Int32 {
        #if canImport(Glibc)
            return socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            return socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }

    private static func withAddress(
        of port: Int, _ work: (UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) -> Bool {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(port).bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { work($0, length) }
        }
    }

    private static func serve(_ connection: Int32, _ upstream: Int, _ answer: (String, String) -> Answer?) {
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            if let head = head(of: received), received.count >= head.length + head.bodyLength {
                guard let answer = answer(head.method, head.path) else {
                    return forward(received, to: upstream, from: connection)
                }
                return send(answer, to: connection)
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            received += buffer[..<count]
        }
    }

    /// Sends a request to another server of this machine, and its response back.
    private static func forward(_ request: [UInt8], to port: Int, from connection: Int32) {
        let server = makeSocket()
        defer { close(server) }
        guard withAddress(of: port, { connect(server, $0, $1) == 0 }) else { return }
        send(request, to: server)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(server, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            send(Array(buffer[..<count]), to: connection)
        }
    }

    private static func head(of bytes: [UInt8]) -> (method: String, path: String, length: Int, bodyLength: Int)? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        let first = lines[0].split(separator: " ").map(String.init)
        guard first.count == 3 else { return nil }
        let field = lines.first { $0.lowercased().hasPrefix("content-length:") }
        let length = field.flatMap { Int($0.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces)) } ?? 0
        return (first[0], first[1], text[..<end.upperBound].utf8.count, length)
    }

    private static func send(_ answer: Answer, to connection: Int32) {
        let body = Array(answer.body.utf8)
        var head = "HTTP/1.1 \(answer.status) Answer\r\nConnection: close\r\nContent-Length: \(body.count)\r\n"
        if answer.isNamed {
            let type = answer.status >= 400 ? "application/problem+json" : "application/json"
            head += "Content-Type: \(type)\r\nCarillon-Server: 0123456789abcdef0123456789abcdef\r\n"
        }
        for (name, value) in answer.headers { head += "\(name): \(value)\r\n" }
        send(Array((head + "\r\n").utf8) + body, to: connection)
    }

    private static func send(_ bytes: [UInt8], to connection: Int32) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            sent += count
        }
    }
}
