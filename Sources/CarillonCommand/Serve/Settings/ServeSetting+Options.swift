import CarillonCore
import CarillonServer
import CarillonWire
import Logging

extension ServeSetting {
    /// The settings that are options of the command line as well.
    static let options: [ServeSetting] = [
        ServeSetting(
            "data", "a directory", isOption: true,
            "The data directory, which is required. It is created if it is missing."
        ) { text, settings in
            settings.dataDirectory = text
            return true
        },
        text(
            "key-file", \.keyFile, "a file", isOption: true,
            """
            The wrapping key file, whose key encrypts the server's keys. It is created if it is missing. [Push \
            credentials](pushes.md#set-it-up) need it. Keep it apart from the data and its backups.
            """),
        ServeSetting(
            "listen", "HOST:PORT, such as 127.0.0.1:8080, or unix: and an absolute path of up to 103 bytes",
            standard: "`127.0.0.1:8080`", isOption: true,
            """
            The address and port to listen on, with IPv6 in brackets; or [a Unix socket](connecting.md#unix-sockets), \
            which needs `public-url`. It is not used if [a service manager passes \
            sockets](service-managers.md#socket-activation).
            """
        ) { text, settings in
            if text.hasPrefix("unix:") {
                let path = String(text.dropFirst("unix:".count))
                guard isSocketPath(path) else { return false }
                settings.unixSocket = path
                return true
            }
            let place = try HostPort(text)
            settings.host = place.host
            settings.port = place.port
            return true
        },
        ServeSetting(
            "metrics-listen", "HOST:PORT, or a port of this machine", standard: "nowhere", isOption: true,
            "The address at which Prometheus reads [`/metrics`](metrics.md)."
        ) { text, settings in
            let place = try HostPort(Int(text) == nil ? text : "127.0.0.1:\(text)")
            settings.metrics = (place.host, place.port)
            return true
        },
        ServeSetting(
            "public-url", "an http or https URL such as https://push.example.com",
            standard: "`http://` and `listen`", isOption: true,
            """
            The address at which senders and apps reach the server. All endpoints begin with it. It is needed when \
            `listen` is `0.0.0.0` or `[::]`.
            """
        ) { text, settings in
            settings.publicURL = try ServerURL(text).text
            return true
        },
        flag(
            "dev",
            "For development: anonymous devices and private addresses are allowed, and the log has more details."),
        flag(
            "anonymous-devices", "Accept devices that did not register, such as Firefox and UnifiedPush distributors."),
        ServeSetting(
            "anonymous-app", "the name of an app", standard: "`anonymous`", isOption: true,
            "The app of anonymous devices."
        ) { text, _ in AppID(text) != nil },
        ServeSetting(
            "log", Logger.Level.allCases.map(\.rawValue).joined(separator: ", "), standard: "`info`", isOption: true,
            "The lowest level of entries that are logged."
        ) { text, _ in Logger.Level(rawValue: text) != nil },
        flag(
            "allow-private-addresses",
            """
            Allow [watches](watch.md), [key sets](users.md#the-key-set) and [approval hooks](approval-hook.md) to have \
            addresses in private, local and reserved networks.
            """),
        ServeSetting(
            "outward-ca", "a file of certificates in PEM", isOption: true,
            "Certificate authorities that are trusted for backends, in addition to the system's."
        ) { text, settings in
            _ = try TrustedFile(text, of: "\"outward-ca\"")
            settings.outward.authorityFile = text
            return true
        },
        ServeSetting(
            "allowed-origins", "origins such as https://app.example.com, with commas between, or *", isOption: true,
            isList: true,
            "[Pages of other origins](connecting.md#pages-in-a-browser) that can send and receive from a browser."
        ) { text, settings in
            do throws(AllowedOrigins.Fault) {
                settings.allowedOrigins = try AllowedOrigins(listing: text)
            } catch {
                throw CallAddress.Fault(reason: error.reason)
            }
            return true
        },
    ]
    /// Whether a Unix socket can have the path. `sockaddr_un` has room for 103 bytes on every system.
    private static func isSocketPath(_ path: String) -> Bool {
        path.hasPrefix("/") && path.utf8.count <= 103 && !path.utf8.contains(0)
    }
}
