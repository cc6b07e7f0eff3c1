#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The socket on which a service manager receives the state of the process (sd_notify(3)).
package struct NotifySocket: Sendable {
    private let path: String
    /// The time after which the service manager ends a process without a sign of activity; nil if there is no limit.
    package let watchdog: Duration?

    /// Returns nil if the environment contains no valid socket of this kind.
    ///
    /// - Parameters:
    ///   - environment: `NOTIFY_SOCKET`, the path of a Unix socket or `@` and an abstract name, and `WATCHDOG_USEC` and
    ///     `WATCHDOG_PID` (sd_watchdog_enabled(3)).
    ///   - processID: Nil is this process.
    package init?(environment: [String: String], processID: Int32? = nil) {
        let most = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1
        guard let path = environment["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@"),
            (2...most).contains(path.utf8.count)
        else { return nil }
        self.path = path
        let own = processID ?? getpid()
        let isOther = environment["WATCHDOG_PID"].map { Int32($0) != own } ?? false
        let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
        watchdog = isOther || microseconds <= 0 ? nil : .microseconds(microseconds)
    }

    /// Sends a state, such as `READY=1`. A state that the service manager does not receive within a second is lost.
    func send(_ state: String) async {
        for _ in 0..<50 {
            if trySending(state) { return }
            do { try await Task.sleep(for: .milliseconds(20)) } catch { return }
        }
    }

    /// - Returns: False if the queue of the service manager is full.
    private func trySending(_ state: String) -> Bool {
        guard let descriptor = SocketDescriptor.makeUnix(.datagrams) else { return true }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        let offset = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let bytes = Array(state.utf8)
        let sent = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, CInt(MSG_DONTWAIT), $0, socklen_t(offset + name.count))
            }
        }
        return sent >= 0 || ![EAGAIN, ENOBUFS, EINTR].contains(errno)
    }
}
