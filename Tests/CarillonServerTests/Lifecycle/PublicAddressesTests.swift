import CarillonCore
import Testing

@testable import CarillonServer

struct PublicAddressesTests {
    @Test(arguments: [
        ("https://push.example.com", "https://push.example.com", "wss://push.example.com/"),
        ("https://push.example.com/", "https://push.example.com", "wss://push.example.com/"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "ws://127.0.0.1:8080/"),
        ("https://example.com/push-server", "https://example.com", "wss://example.com/push-server/"),
    ])
    func `origin and socket follow from the public address`(base: String, origin: String, socket: String) {
        let addresses = PublicAddresses(base: base)
        #expect(addresses.publicURLs.origin == origin)
        #expect(addresses.socket == socket)
    }

    @Test func `only our own endpoints have a token`() {
        let addresses = PublicAddresses(base: "https://push.example.com")
        #expect(addresses.token(ofEndpoint: "https://push.example.com/push/abc") == "abc")
        #expect(addresses.token(ofEndpoint: "https://push.example.com/push/abc?up=1") == "abc")
        #expect(addresses.token(ofEndpoint: "https://push.example.com/%70ush/%61b%63") == "abc")
        #expect(addresses.token(ofEndpoint: "https://push.example.com/push/ab%2Fc") == "ab%2Fc")
        #expect(addresses.token(ofEndpoint: "https://push.example.com.evil.example/push/abc") == nil)
        #expect(addresses.token(ofEndpoint: "http://push.example.com/push/abc") == nil)
    }

    @Test func `endpoints of former public URLs have a token, and new ones begin with the present URL`() {
        let addresses = PublicAddresses(
            base: "https://push.example.com", former: ["https://old.example.com/push-server/", "http://10.0.0.1:8080"])
        #expect(addresses.base == "https://push.example.com")
        #expect(addresses.endpoint(token: "abc") == "https://push.example.com/push/abc")
        #expect(addresses.socket == "wss://push.example.com/")
        for endpoint in [
            "https://push.example.com/push/abc", "https://old.example.com/push-server/push/abc?up=1",
            "http://10.0.0.1:8080/push/abc", "HTTPS://Old.Example.com:443/push-server/push/abc",
        ] {
            #expect(addresses.token(ofEndpoint: endpoint) == "abc", "\(endpoint)")
        }
        for endpoint in [
            "https://old.example.com/push/abc", "https://old.example.com/push-server2/push/abc",
            "https://old.example.com:8443/push-server/push/abc", "http://10.0.0.1/push/abc",
            "https://push.example.com/push-server/push/abc", "https://old.example.com@evil.example/push-server/push/abc",
            "", "/push/abc", "push/abc",
        ] {
            #expect(addresses.token(ofEndpoint: endpoint) == nil, "\(endpoint)")
        }
    }
}
