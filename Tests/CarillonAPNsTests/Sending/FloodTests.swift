import NIOCore
import TestSupport
import Testing

@testable import CarillonAPNs

/// A service that floods and does not read costs a connection, and no memory.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct FloodTests {
    @Test(arguments: [(BacklogTests.Flood.pings, true), (.emptySettings, false)])
    func `a flood that nobody reads the answers to ends its connection`(
        flood: BacklogTests.Flood, isSecure: Bool
    ) async throws {
        let certificates = try TestCertificates()
        let server = try await FloodingServer(
            frame: flood.frame, tls: isSecure ? try certificates.serverContext() : nil)
        var configuration = APNsClient.Configuration(
            credentials: try Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "localhost", port: server.port, isSecure: isSecure))
        configuration.trustRoots = certificates.authorityPEM
        let client = try APNsClient(configuration)
        let before = ResidentMemory.kibibytes()
        let error = await #expect(throws: APNsError.self) { try await client.send(.alert("Hi"), to: Samples.token) }
        #expect(error?.code == .connectionLost)
        #expect(error?.message.contains("more answers than it reads") == true, "\(error?.message ?? "")")
        try await eventually { server.counts.closed > 0 }
        #expect(server.counts.bytes > 512 << 10)
        // Other tests of this process use memory meanwhile.
        #expect(ResidentMemory.kibibytes() - before < 256 << 10)
        // It is not called in a loop.
        #expect(server.counts.opened <= 4)
        await client.shutDown(drains: false)
        try await server.close()
    }
}
