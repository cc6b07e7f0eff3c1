import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct CallAddressTests {
    @Test(arguments: [
        ("http://example.com", "example.com:80", "example.com", "/"),
        ("HTTPS://Example.COM", "example.com:443", "example.com", "/"),
        ("https://example.com:8443/a/b?c=d&e", "example.com:8443", "example.com:8443", "/a/b?c=d&e"),
        ("http://example.com?x=1", "example.com:80", "example.com", "/?x=1"),
        ("http://example.com:80/", "example.com:80", "example.com", "/"),
        ("https://[2606:4700::1]:444/x", "[2606:4700:0:0:0:0:0:1]:444", "[2606:4700:0:0:0:0:0:1]:444", "/x"),
        ("https://8.8.8.8/@me", "8.8.8.8:443", "8.8.8.8", "/@me"),
        ("http://back_end-1.example", "back_end-1.example:80", "back_end-1.example", "/"),
        ("http://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example:80", "xn--bcher-kva.example", "/%C3%BC"),
    ])
    func `an address is read as it will be called`(text: String, peer: String, host: String, target: String) throws {
        let address = try CallAddress(text)
        #expect(address.peer == peer)
        #expect(address.hostHeader == host)
        #expect(address.target == target)
        #expect(address.isSecure == text.lowercased().hasPrefix("https"))
    }

    @Test(arguments: [
        "", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "gopher://x", "javascript:alert(1)",
        "http:/example.com", "http:example.com", "http://", "https://", "http:///path", "http://:80", "http://?x",
        "httpx://a",
        "http://user@example.com", "http://user:password@example.com", "http://@example.com", "http://a@b@example.com",
        "http://example.com\\@evil.example", "http://example.com#@evil.example", "http://example.com/#fragment",
        "http://example.com:0", "http://example.com:65536", "http://example.com:", "http://example.com:80:80",
        "http://example.com:+80", "http://example.com:8o", "http://exa mple.com", " http://example.com",
        "http://example.com\n",
        "http://bücher.example", "http://example。com", "http://１２７.0.0.1", "http://exam%70le.com", "http://a..b",
        "http://a.",
        "http://.a", "http://-a.b", "http://a-.b", "http://[::1", "http://::1", "http://[::1]x", "http://[fe80::1%25eth0]",
        "http://[127.0.0.1]", "http://[]", "http://[v1.x]", "http://a[b]", "http://*", "http://a,b", "http://a;b",
    ])
    func `a text that is not a plain HTTP address is refused`(text: String) {
        #expect(code(text) == .watchAddressInvalid)
    }

    @Test(arguments: [
        "2130706433", "017700000001", "0177.0.0.1", "0x7f000001", "0x7f.0.0.1", "0X7F.1", "127.1", "127.0.1", "127.0.0.01",
        "127.0.0.0x1", "1.2.3.4.5", "256.256.256.256", "999", "0", "0x", "example.123", "00000010.0.0.1",
    ])
    func `an IPv4 address in any notation but four decimal numbers is refused`(host: String) {
        #expect(code("http://\(host)/") == .watchAddressInvalid)
        #expect(code("http://\(host):8080/") == .watchAddressInvalid)
    }

    @Test(arguments: [
        "http://127.0.0.1", "https://10.0.0.1:8080/x", "http://[::1]", "http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]",
        "http://[0:0:0:0:0:FFFF:127.0.0.1]", "http://169.254.169.254/latest/meta-data", "http://[fd00::1]", "http://0.0.0.0",
        "http://[::]", "http://localhost", "http://LOCALHOST:80", "http://a.localhost", "http://255.255.255.255",
    ])
    func `an address in a network of somebody's own is refused, unless the operator allows it`(text: String) throws {
        let address = try CallAddress(text)
        #expect(throws: Refusal.self) { try CallRules().check(address) }
        try CallRules(allowsPrivate: true).check(address)
    }

    @Test func `an address may have 2048 characters`() throws {
        let start = "http://example.com/"
        _ = try CallAddress(start + String(repeating: "x", count: 2048 - start.count))
        #expect(code(start + String(repeating: "x", count: 2049 - start.count)) == .watchAddressInvalid)
    }

    @Test func `random texts are refused or read, and never crash`() {
        var generator = SeededRandom.forTest()
        let pieces = [
            "http://", "https://", "[", "]", ":", "::", "@", "/", "?", "#", ".", "1", "127", "0x", "a", "%", "é", "\0",
        ]
        for _ in 0..<5000 {
            let text = (0..<Int.random(in: 0...8, using: &generator))
                .map { _ in pieces[Int.random(in: 0..<pieces.count, using: &generator)] }.joined()
            _ = try? CallAddress(text)
            _ = NetworkAddress(text)
        }
    }

    private func code(_ text: String) -> ErrorCode? {
        do {
            _ = try CallAddress(text)
            return nil
        } catch {
            return error.code
        }
    }
}
