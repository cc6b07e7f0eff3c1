import CarillonCore
import Testing

struct PublicURLsTests {
    private let addresses = PublicURLs(
        "https://push.example.com/", former: ["https://old.example.com/a/b", "https://push.example.com/former"])

    @Test(arguments: [
        ("https://push.example.com", true, ""), ("https://push.example.com/", true, "/"),
        ("https://PUSH.example.com:443/push/x?y#z", false, "/push/x?y#z"), ("https://push.example.com?q", false, "?q"),
        ("https://push.example.com/former/push/x", false, "/push/x"),
        ("https://push.example.com/former2/push/x", false, "/former2/push/x"),
        ("https://old.example.com/a/b", false, ""), ("https://old.example.com/a/b/push/x", false, "/push/x"),
    ])
    func `an address under a public URL is taken apart`(address: String, isOrigin: Bool, path: String) throws {
        let match = try #require(addresses.match(address))
        #expect(match.isOrigin == isOrigin)
        #expect(match.path == path)
    }

    @Test(arguments: ["https://old.example.com", "https://old.example.com/"])
    func `the origin of a public URL with a path is ours, and not under the URL`(address: String) {
        #expect(addresses.match(address)?.isOrigin == true)
        #expect(addresses.match(address)?.path == nil)
    }

    @Test(arguments: [
        "", "/", "push.example.com", "http://push.example.com", "https://push.example.com:8443",
        "https://push.example.com.evil.example", "https://user@push.example.com", "https://old.example.com/a",
        "https://old.example.com/a/bc", "https://old.example.com/?a/b", "https:/push.example.com",
        "https:///push.example.com",
        "wss://push.example.com",
    ])
    func `any other address is another server's`(address: String) {
        #expect(addresses.match(address) == nil)
    }
}
