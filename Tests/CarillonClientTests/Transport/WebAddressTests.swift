import Testing

@testable import CarillonClient

struct WebAddressTests {
    func address(_ text: String) throws -> WebAddress { try #require(WebAddress(webSocket: text)) }

    @Test(arguments: [
        ("ws://host", "host", 80, "/", "host"), ("wss://host/path?a=b", "host", 443, "/path?a=b", "host"),
        ("wss://host:8443/", "host", 8443, "/", "host:8443"), ("ws://[::1]:8080/x", "::1", 8080, "/x", "[::1]:8080"),
    ])
    func `an address is taken apart`(
        _ text: String, _ host: String, _ port: Int, _ target: String, _ authority: String
    ) throws {
        let address = try address(text)
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.target == target)
        #expect(address.authority == authority)
    }

    @Test(arguments: [
        "", "host", "http://host", "ws://", "ws://user@host/", "ws://host/#part", "ws://host:0/",
        "ws://ho st/", "ws://host/\n", "ws://host/\r\n", "ws://ho\\st/", "ws://host/ ",
    ])
    func `a text that is no socket address is refused`(_ text: String) {
        #expect(WebAddress(webSocket: text) == nil)
    }
}
