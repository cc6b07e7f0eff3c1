import CarillonCore
import NIOHTTP1
import Testing

@testable import CarillonServer

struct AllowedOriginsTests {
    private let origins: AllowedOrigins

    init() throws {
        origins = try AllowedOrigins(listing: "https://a.example, http://b.example:8080")
            .on(publicURLs: PublicURLs("https://push.example", former: ["https://old.example/push-server"]))
    }

    @Test(arguments: [
        [], ["https://push.example"], ["HTTPS://Push.Example:443/"],
        ["https://old.example"], ["https://a.example"], ["http://b.example:8080"],
        ["wss://push.example/"], ["ws://127.0.0.1:8080/"],
    ])
    func `no page, one's own, and one that is listed may connect`(values: [String]) {
        #expect(origins.admitSocket(of: values))
    }

    @Test(arguments: [
        ["https://evil.example"], ["http://push.example"], ["https://push.example:8443"],
        ["https://push.example.evil.example"],
        ["http://old.example"], ["https://old.example:8443"],
        ["https://evil.example/https://a.example"], ["null"], [""], ["http://b.example"],
        ["https://a.example", "https://a.example"],
        ["https://a.example, https://evil.example"], ["https://user@a.example"],
    ])
    func `a page of any other origin may not`(values: [String]) {
        #expect(!origins.admitSocket(of: values))
    }

    @Test func `a list of all admits every origin`() throws {
        let all = try AllowedOrigins(listing: "*")
        for value in ["https://evil.example", "null", "http://x"] {
            #expect(all.admitSocket(of: [value]))
            #expect(all.allows(value))
        }
    }

    @Test(arguments: [
        "a.example", "https://a.example:0", "https://a.example:65536", "http://-a.example",
        "https://a.example/path", "https://", "://a", "https://a b", "https://a.example;x", "null",
    ])
    func `a text that is not an origin is not a list`(text: String) {
        #expect(throws: AllowedOrigins.Fault.self) { try AllowedOrigins(listing: "https://good.example,\(text)") }
    }

    // MARK: Sharing

    private func head(
        _ method: HTTPMethod, _ uri: String, origin: String? = "https://a.example", asking: String? = nil
    ) -> HTTPRequestHead {
        var headers: HTTPHeaders = [:]
        if let origin { headers.add(name: "origin", value: origin) }
        if let asking { headers.add(name: "access-control-request-method", value: asking) }
        return HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: headers)
    }

    @Test(arguments: [
        (HTTPMethod.POST, "/push/x", "GET, HEAD, POST"), (.POST, "/v1/devices", "POST"),
        (.GET, "/v1/inbox?wait=1", "GET, HEAD"),
        (.POST, "/v1/inbox/results", "POST"), (.GET, "/v1/device", "DELETE, GET, HEAD"),
        (.POST, "/v1/device/channels", "GET, HEAD, POST"), (.DELETE, "/v1/device/channels/y", "DELETE"),
        (.DELETE, "/message/z", "DELETE, GET, HEAD"),
    ])
    func `a sender's and a device's address is shared with a listed origin`(
        method: HTTPMethod, uri: String, methods: String
    ) throws {
        let sharing = CrossOriginSharing(origins: origins)
        #expect(sharing.terms(for: head(method, uri)) == .init(origin: "https://a.example", varies: true))
        let preflight = try #require(sharing.preflight(head(.OPTIONS, uri, asking: "\(method)")))
        #expect(preflight.status == .noContent)
        #expect(preflight.headers["access-control-allow-methods"] == [methods])
        #expect(preflight.headers[canonicalForm: "access-control-allow-headers"].contains("Authorization"))
        #expect(preflight.headers[canonicalForm: "access-control-allow-headers"].contains("TTL"))
        #expect(!preflight.headers.contains(name: "access-control-allow-credentials"))
    }

    @Test(arguments: [
        "/v1/apps", "/v1/keys", "/v1/devices/x", "/v1/messages/x", "/push/x/watch", "/health/ready", "/", "/GNP1.0",
        "/v1/inboxes",
    ])
    func `an operator's or a backend's address is shared with nobody`(uri: String) throws {
        for origins in [origins, try AllowedOrigins(listing: "*")] {
            let sharing = CrossOriginSharing(origins: origins)
            #expect(sharing.terms(for: head(.GET, uri)) == nil)
            #expect(sharing.preflight(head(.OPTIONS, uri, asking: "GET")) == nil)
        }
    }

    @Test(arguments: ["https://evil.example", "null", nil])
    func `another origin gets no permission, and the response varies by origin`(origin: String?) {
        let sharing = CrossOriginSharing(origins: origins)
        #expect(sharing.terms(for: head(.POST, "/push/x", origin: origin)) == .init(origin: nil, varies: true))
        #expect(sharing.preflight(head(.OPTIONS, "/push/x", origin: origin, asking: "POST")) == nil)
    }

    @Test func `two origins count as none`() {
        var two = head(.POST, "/push/x")
        two.headers.add(name: "origin", value: "https://evil.example")
        #expect(CrossOriginSharing(origins: origins).terms(for: two)?.origin == nil)
    }

    @Test func `without a list no header is sent, and the server's own page needs none`() throws {
        let sharing = CrossOriginSharing(origins: AllowedOrigins.none.on(publicURLs: PublicURLs("https://push.example")))
        #expect(sharing.terms(for: head(.POST, "/push/x", origin: "https://push.example")) == nil)
    }

    @Test func `OPTIONS without a preflight field is a request like others`() {
        #expect(CrossOriginSharing(origins: origins).preflight(head(.OPTIONS, "/push/x")) == nil)
    }
}
