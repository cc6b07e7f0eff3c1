import Foundation
import NIOCore
import TestSupport
import Testing

@testable import CarillonServer

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Sockets that a service manager passes to a server.
@Suite(.timeLimit(.minutes(5)))
struct InheritedSocketTests {
    private func passed(_ descriptor: CInt, count: String = "1", to pid: String = "7") throws -> [InheritedSocket] {
        try InheritedSocket.all(
            environment: ["LISTEN_PID": pid, "LISTEN_FDS": count], processID: 7, first: descriptor)
    }

    /// A socket that is bound to a port of this machine.
    private func boundSocket() throws -> CInt {
        let descriptor = socket(AF_INET, SocketDescriptor.Kind.streams.number, 0)
        let result = try SocketAddress(ipAddress: "127.0.0.1", port: 0).withSockAddr { address, size in
            bind(descriptor, address, socklen_t(size))
        }
        #expect(descriptor >= 0 && result == 0)
        return descriptor
    }

    @Test func `a socket that listens is taken, by the process that it was passed to`() throws {
        let descriptor = try boundSocket()
        defer { close(descriptor) }
        SocketDescriptor.setBacklog(1, of: descriptor)
        let sockets = try passed(descriptor)
        #expect(sockets.map(\.descriptor) == [descriptor] && sockets.map(\.isTCP) == [true])
        #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
        for pid in ["8", "", "x"] { #expect(try passed(descriptor, to: pid).isEmpty) }
        for count in ["0", "-1", "", "x"] { #expect(try passed(descriptor, count: count).isEmpty) }
        #expect(try InheritedSocket.all(environment: ["LISTEN_FDS": "1"], first: descriptor).isEmpty)
    }

    @Test func `a socket that does not listen is refused by its number`() throws {
        let descriptor = try boundSocket()
        defer { close(descriptor) }
        let fault = #expect(throws: InheritedSocket.Fault.self) { _ = try passed(descriptor) }
        #expect(fault?.sentence.contains(" \(descriptor),") == true)
        let file = open("/dev/null", O_RDONLY)
        defer { close(file) }
        #expect(throws: InheritedSocket.Fault.self) { _ = try passed(file) }
    }

    @Test func `a server answers on each socket that it was passed`() async throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/socket"
        let descriptor = try boundSocket()
        defer { close(descriptor) }
        SocketDescriptor.setBacklog(1, of: descriptor)
        let made = try UnixSocketFile.make(path)
        defer { close(made.descriptor) }
        SocketDescriptor.setBacklog(1, of: made.descriptor)
        let sockets = try passed(descriptor) + passed(made.descriptor)
        #expect(sockets.map(\.isTCP) == [true, false])
        let port = try #require(LocalPort.of(descriptor))
        try await ServedConnections.run {
            $0.inheritedSockets = sockets
        } _: { server in
            let overTCP = ServedConnections(homes: server.homes, port: port)
            let overUnix = ServedConnections(homes: server.homes, port: port, unixSocket: path)
            for connections in [overTCP, overUnix] {
                let answer = try await connections.request("GET /health/ready")
                #expect(answer.status == 200)
            }
        }
        // They belong to the service manager, and stay open.
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(try passed(descriptor).count == 1)
    }
}
