import CarillonCore
import CarillonWire
import Foundation
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

/// Servers that listen on a Unix socket.
@Suite(.timeLimit(.minutes(5)))
struct UnixSocketTests {
    private let directory = TemporaryDirectory()
    private var path: String { directory.path + "/socket" }

    private func reason(_ work: () throws -> Void) -> String {
        do {
            try work()
            return ""
        } catch {
            return (error as? ListenFault)?.reason ?? "\(error)"
        }
    }

    /// Nil where there is no file.
    private func mode(of path: String) throws -> Int? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        return try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `the owner and the group can connect, and nobody else`() throws {
        let (descriptor, file) = try UnixSocketFile.make(path)
        defer { close(descriptor) }
        #expect(try mode(of: path) == 0o660)
        file.remove()
        #expect(try mode(of: path) == nil)
    }

    @Test func `a socket that a killed server left is replaced`() throws {
        let (left, _) = try UnixSocketFile.make(path)
        SocketDescriptor.setBacklog(1, of: left)
        close(left)
        let (descriptor, file) = try UnixSocketFile.make(path)
        close(descriptor)
        file.remove()
    }

    @Test func `a socket in use and another file are left alone`() throws {
        let (descriptor, file) = try UnixSocketFile.make(path)
        defer { close(descriptor) }
        SocketDescriptor.setBacklog(1, of: descriptor)
        #expect(
            reason { _ = try UnixSocketFile.make(path) } == "another process listens there; stop it, or choose another path")
        #expect(try mode(of: path) != nil)
        // Another server has the place meanwhile.
        #expect(unlink(path) == 0)
        try Data("text".utf8).write(to: URL(fileURLWithPath: path))
        file.remove()
        #expect(
            reason { _ = try UnixSocketFile.make(path) }
                == "the path has a file that is not a socket; remove it, or choose another path")
        #expect(FileManager.default.contents(atPath: path) == Data("text".utf8))
    }

    @Test func `a server answers on its socket, and removes it`() async throws {
        let path = path
        try await ServedConnections.run {
            $0.unixSocket = path
        } _: { server in
            let answer = try await server.request("GET /health/ready")
            #expect(answer.status == 200)
            #expect(try mode(of: path) == 0o660)
        }
        #expect(try mode(of: path) == nil)
    }

    @Test func `all clients on the socket have one address, unless a proxy names another`() async throws {
        let path = path
        try await ServedConnections.run {
            $0.unixSocket = path
            $0.clientAddress.header = "X-Forwarded-For"
            $0.rateLimits.addressRegistrations = Rate(perSecond: 1, burst: 1)
        } _: { server in
            let app = try AppID.checked("com.example.app")
            _ = try await server.domain.apps.create(app)
            let key = try await server.domain.keys.createKey(role: .client, app: app, name: nil).secret.text
            @Sendable func register(_ fields: [String] = []) async throws -> Int {
                try await server.request("POST /v1/devices", ["Authorization: Bearer \(key)"] + fields).status
            }
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 { group.addTask { try await register() } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(statuses.contains(201) && statuses.contains(429), "\(statuses)")
            #expect(try await register(["X-Forwarded-For: 192.0.2.7"]) == 201)
        }
    }
}
