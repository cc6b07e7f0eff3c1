import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The socket of a service manager, which receives the messages of a process.
package final class NotifyReceiver: Sendable {
    private let descriptor: Int32

    package struct Failed: Error {
        package let code: Int32
    }

    /// - Parameter name: A path, or `@` and an abstract name.
    package init(_ name: String) throws {
        #if canImport(Glibc)
            let kind = Int32(SOCK_DGRAM.rawValue)
        #else
            let kind = SOCK_DGRAM
        #endif
        descriptor = socket(AF_UNIX, kind, 0)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
        let offset = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(offset + bytes.count)
        let descriptor = descriptor
        let result = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard result == 0 else { throw Failed(code: errno) }
    }

    deinit { close(descriptor) }

    /// The next state of the process; nil if none arrives within the time.
    package func next(withinMilliseconds time: Int32 = 60_000) async -> String? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [descriptor] in
                var waits = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&waits, 1, time) == 1 else { return continuation.resume(returning: nil) }
                var bytes = [UInt8](repeating: 0, count: 4096)
                let count = recv(descriptor, &bytes, bytes.count, 0)
                continuation.resume(
                    returning: count >= 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil)
            }
        }
    }
}
