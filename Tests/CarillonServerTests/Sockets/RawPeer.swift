import Dispatch
import Foundation
import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A peer whose test decides when it reads, and how much: bytes over a socket of its own, with a small receive buffer, so that
/// little fits between the server and it. It waits on a thread outside of the cooperative pool.
final class RawPeer: Sendable {
    struct Ended: Error {
        /// Before the end.
        var seen = ""
    }

    private let descriptor: Int32

    /// - Parameter receiveBytes: The kernel's receive buffer; nil keeps the default.
    init(port: Int, receiveBytes: Int32? = 4096) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
        }
        var time = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        let result = try SocketAddress(ipAddress: "127.0.0.1", port: port).withSockAddr { address, size in
            connect(descriptor, address, socklen_t(size))
        }
        guard result == 0 else { throw Ended() }
        signal(SIGPIPE, SIG_IGN)
    }

    deinit { close(descriptor) }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        guard write(descriptor, bytes, bytes.count) == bytes.count else { throw Ended() }
    }

    /// Sends all of it, if there is space within a moment; returns false without space, or if the server has closed.
    func sendIfPossible(_ bytes: [UInt8]) -> Bool {
        var waits = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        var rest = bytes[...]
        while !rest.isEmpty {
            guard poll(&waits, 1, 500) == 1, waits.revents & Int16(POLLOUT) != 0 else { return false }
            let count = Array(rest.prefix(4096)).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// The next bytes, at most the given number; empty if the server has closed.
    func read(_ limit: Int = 65_536) async -> [UInt8] {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [descriptor] in
                var bytes = [UInt8](repeating: 0, count: limit)
                let count = recv(descriptor, &bytes, limit, 0)
                continuation.resume(returning: count > 0 ? Array(bytes.prefix(count)) : [])
            }
        }
    }

    /// Reads until a text was received; returns all data until then.
    func read(until text: String) async throws -> String {
        var seen: [UInt8] = []
        while true {
            let bytes = await read()
            guard !bytes.isEmpty else { throw Ended(seen: String(decoding: seen, as: UTF8.self)) }
            seen += bytes
            let whole = String(decoding: seen, as: UTF8.self)
            if whole.contains(text) { return whole }
        }
    }

    /// Reads until the server closes; returns all data until then.
    func readToEnd() async -> String {
        var seen: [UInt8] = []
        while true {
            let bytes = await read()
            if bytes.isEmpty { return String(decoding: seen, as: UTF8.self) }
            seen += bytes
        }
    }

    // MARK: As a client of the socket

    /// Opens a WebSocket, and sends hello as a device.
    func hello(credential: String, version: Int = 1) async throws {
        try send(
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
        _ = try await read(until: "\r\n\r\n")
        try sendFrame(#"{"messageType":"hello","carillon":\#(version),"credential":"\#(credential)"}"#)
        _ = try await read(until: "caughtUp")
    }

    func sendFrame(_ text: String) throws { try sendFrame(0x1, Array(text.utf8)) }

    /// A frame masked with zeros.
    func sendFrame(_ opcode: UInt8, _ payload: [UInt8] = []) throws {
        var frame: [UInt8] = [0x80 | opcode]
        if payload.count < 126 {
            frame.append(0x80 | UInt8(payload.count))
        } else {
            frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        }
        try send(frame + [0, 0, 0, 0] + payload)
    }
}
