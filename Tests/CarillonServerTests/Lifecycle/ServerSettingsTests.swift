import CarillonServer
import Testing

struct ServerSettingsTests {
    @Test func `a silent socket is pinged before a proxy closes it that waits for a minute`() {
        let settings = ServerSettings(dataDirectory: "")
        #expect(settings.keepAliveSeconds + settings.keepAliveAnswerSeconds < 60)
    }

    @Test(arguments: [
        ("127.0.0.1", "http://127.0.0.1:8080", false), ("::1", "http://[::1]:8080", false),
        ("push.example.com", "http://push.example.com:8080", false), ("0.0.0.0", "http://0.0.0.0:8080", true),
        ("::", "http://[::]:8080", true),
    ])
    func `without a public URL addresses begin with where it listens`(host: String, url: String, lacks: Bool) {
        var settings = ServerSettings(host: host, port: 8080, dataDirectory: "")
        #expect(settings.listenURL == url)
        #expect(settings.lacksPublicURL == lacks)
        settings.publicURL = "https://push.example.com"
        #expect(!settings.lacksPublicURL)
    }

    @Test func `a Unix socket is no address to reach`() {
        var settings = ServerSettings(dataDirectory: "")
        settings.unixSocket = "/run/carillon/socket"
        #expect(settings.lacksPublicURL)
        #expect(settings.listenPlaces == [.unix(path: "/run/carillon/socket")])
        #expect(settings.listenPlaces.map(\.description) == ["unix:/run/carillon/socket"])
    }
}
