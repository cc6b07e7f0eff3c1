import CarillonCore
import NIOCore
import NIOHTTP1
import Testing

@testable import CarillonServer

/// The address of a client, according to the socket.
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

    @Test(arguments: [
        ("203.0.113.7", "203.0.113.7"), ("203.0.113.7:50001", "203.0.113.7"), ("203.0.113.7:_port", "203.0.113.7"),
        ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]", "2001:db8::7"), ("[2001:db8::7]:50001", "2001:db8::7"),
        ("192.0.2.1, 203.0.113.7:1 ", "203.0.113.7"), ("192.0.2.1,\t203.0.113.7", "203.0.113.7"),
        ("for=192.0.2.60;proto=http", "192.0.2.60"), ("For=\"192.0.2.60:47011\"", "192.0.2.60"),
        ("proto=http;FOR=192.0.2.60;by=203.0.113.43", "192.0.2.60"), ("for = 192.0.2.60", "192.0.2.60"),
        ("for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"), ("for=\"[2001:db8:cafe::17]\"", "2001:db8:cafe::17"),
        ("for=192.0.2.43, for=198.51.100.17;host=\"a,b\"", "198.51.100.17"),
        ("for=\"\\1\\92.0.2.60\"", "192.0.2.60"),
        // Text of an earlier hop does not become part of the last element.
        ("for=192.0.2.43;a=\", for=198.51.100.17", "198.51.100.17"),
        ("for=192.0.2.43;a=\", for=\"198.51.100.17:1\";host=\"x\\\"y\"", "198.51.100.17"),
        ("garbage\", 198.51.100.17", "198.51.100.17"),
    ])
    func `a proxy names the client in its last element`(field: String, address: String) throws {
        #expect(ForwardedAddress(lastOf: ["192.0.2.99", field]) == .known(try #require(NetworkAddress(address))))
    }

    @Test(arguments: [
        "unknown", "Unknown", "_hidden", "_SEVKISEK.a-b", "unknown:4711", "_hidden:_port", "for=unknown", "for=\"_gazonk\"",
        "for=192.0.2.60, for=unknown",
    ])
    func `a proxy can keep the address to itself`(field: String) {
        #expect(ForwardedAddress(lastOf: [field]) == .undisclosed)
    }

    @Test(arguments: [
        "", ",", "192.0.2.1,", "x", "unix:", "_", "_a b", "192.0.2.1:", "192.0.2.1:70000", "192.0.2.1:x",
        "192.0.2.1 192.0.2.2", "192.0.2.01", "[2001:db8::7", "2001:db8::7]", "[2001:db8::7]50001", "[2001:db8::7]:", "[]",
        "[x]:1", "proto=http",
        "for=", "for=\"\"", "for=x;proto=http", "by=192.0.2.1", "192.0.2.1;proto=http", "fe80::1%eth0", "ü",
        // If the quotes of the last element are broken, an earlier element does not count, because a client can have written it.
        "for=6.6.6.6, for=192.0.2.1;host=\"x\"\"", "for=6.6.6.6, for=\"192.0.2.1", "for=6.6.6.6, for=\"192.0.2.1\\\"",
        "for=6.6.6.6;a=b\", for=192.0.2.1\"", "for=6.6.6.6, garbage\"", "for=\"192.0.2.1",
        "6.6.6.6, 192.0.2.1\"", "6.6.6.6, \"192.0.2.1", "6.6.6.6, 192.0.2.1;host=\"x\"\"", "6.6.6.6\", 192.0.2.1\"",
    ])
    func `another value is not an address, regardless of the values before it`(field: String) {
        #expect(ForwardedAddress(lastOf: [field]) == .invalid)
        #expect(ForwardedAddress(lastOf: ["for=192.0.2.1", field]) == .invalid)
    }

    @Test func `without the field no address is known`() {
        #expect(ForwardedAddress(lastOf: []) == nil)
        #expect(ClientAddress(header: "Forwarded").forwarded(in: ["x-forwarded-for": "192.0.2.1"]) == nil)
        #expect(ClientAddress().forwarded(in: ["forwarded": "for=192.0.2.1"]) == nil)
        #expect(
            ClientAddress(header: "Forwarded").forwarded(in: ["forwarded": "for=192.0.2.1"])?.address
                == NetworkAddress("192.0.2.1"))
    }

    @Test func `all clients on Unix sockets have one address, of this machine`() throws {
        let address = try #require(NetworkAddress(try SocketAddress(unixDomainSocketPath: "/run/carillon")))
        #expect(address.isLoopback)
        #expect(NetworkAddress(try SocketAddress(unixDomainSocketPath: "")) == address)
        #expect(NetworkAddress(nil) == nil)
    }
}
