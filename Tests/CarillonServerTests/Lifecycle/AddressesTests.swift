import Testing

@testable import CarillonServer

struct AddressesTests {
    @Test(arguments: [
        ("https://push.example.com", "https://push.example.com", "wss://push.example.com/"),
        ("https://push.example.com/", "https://push.example.com", "wss://push.example.com/"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "ws://127.0.0.1:8080/"),
        ("https://example.com/push-server", "https://example.com", "wss://example.com/push-server/"),
    ])
    func `origin and socket follow from the public address`(base: String, origin: String, socket: String) {
        let addresses = Addresses(base: base)
        #expect(addresses.origin == origin)
        #expect(addresses.socket == socket)
    }

    @Test func `only our own endpoints have a token`() {
        let addresses = Addresses(base: "https://push.example.com")
        #expect(addresses.token(ofEndpoint: "https://push.example.com/push/abc") == "abc")
        #expect(addresses.token(ofEndpoint: "https://push.example.com/push/abc?up=1") == "abc")
        #expect(addresses.token(ofEndpoint: "https://push.example.com.evil.example/push/abc") == nil)
        #expect(addresses.token(ofEndpoint: "http://push.example.com/push/abc") == nil)
    }
}
