import CarillonCore
import NIOCore
import Testing

@testable import CarillonServer

/// From where somebody comes, as the socket says it.
struct ClientAddressTests {
    @Test(arguments: ["192.0.2.77", "2001:db8::7", "::1", "0.0.0.0"])
    func `an address is that of the socket`(text: String) throws {
        let socket = try SocketAddress(ipAddress: text, port: 4711)
        #expect(NetworkAddress(socket) == NetworkAddress(text) && NetworkAddress(text) != nil)
    }

    @Test func `IPv4 over a socket for both is IPv4`() throws {
        let socket = try SocketAddress(ipAddress: "::ffff:192.0.2.77", port: 4711)
        #expect(NetworkAddress(socket) == .v4(0xC000_024D))
    }

    @Test func `the path of a socket is no address`() throws {
        #expect(NetworkAddress(try SocketAddress(unixDomainSocketPath: "/run/carillon")) == nil)
        #expect(NetworkAddress(nil) == nil)
    }
}
