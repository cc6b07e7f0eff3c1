import NIOCore
import NIOPosix
import Testing

@testable import CarillonAPNs

/// Names are resolved for each connection.
@Suite(.timeLimit(.minutes(5)))
struct AddressSpreaderTests {
    private let spreader = AddressSpreader(loop: MultiThreadedEventLoopGroup.singleton.next())

    @Test func `a name has its addresses, with the port`() async throws {
        let addresses = try await spreader.initiateAQuery(host: "localhost", port: 2197).get()
        #expect(addresses.contains { $0.ipAddress == "127.0.0.1" && $0.port == 2197 })
        let six = try await spreader.initiateAAAAQuery(host: "::1", port: 2197).get()
        #expect(six.map(\.ipAddress) == ["::1"])
    }

    @Test func `an unknown name has no address`() async throws {
        #expect(try await spreader.initiateAQuery(host: "no-such-host.invalid", port: 443).get().isEmpty)
    }
}
