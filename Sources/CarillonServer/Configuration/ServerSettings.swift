package import CarillonCore

/// All settings of a server.
package struct ServerSettings: Sendable {
    package var host: String
    package var port: Int
    /// The path of a Unix socket to listen on instead of host and port.
    package var unixSocket: String?
    /// Sockets to listen on instead of host, port and Unix socket.
    package var inheritedSockets: [InheritedSocket] = []
    package var listenerRetry = ListenerRetry.Limits()
    /// The prefix of endpoints and message addresses, without a slash at the end. Nil: `http://host:port` of the listener.
    package var publicURL: String?
    /// Earlier public URLs. Addresses with them stay valid.
    package var formerPublicURLs: [String] = []
    package static let mostFormerPublicURLs = 16
    package var dataDirectory: String
    /// The wrapping key file; nil if no secrets are stored that a copy of the data must not reveal.
    package var keyFile: String?
    /// The app of devices that connect without registration; nil refuses such devices.
    package var anonymousApp: String?

    /// The largest number of open sockets. Further handshakes are answered with 503.
    package var maximumSockets: Int
    package var helloTimeoutSeconds: Int
    /// Less than 60 seconds, after which proxies such as nginx close an idle connection by default.
    package var keepAliveSeconds: Int
    package var keepAliveAnswerSeconds: Int
    /// The period in which a peer must read at least 4 KiB, or all waiting data. A slower socket or stream is closed.
    package var stallSeconds: Int {
        get { requests.stallSeconds }
        set { requests.stallSeconds = newValue }
    }
    package var window: DeliveryMachine.Limits

    /// The largest number of open HTTP connections, without sockets. Requests on further connections are answered with 503.
    package var maximumConnections: Int
    /// The same limit for one IPv4 address or one IPv6 network. Nil: a quarter of the total.
    package var connectionsPerAddress: Int?
    /// The largest number of sockets of one address. Nil: a quarter of the total.
    package var socketsPerAddress: Int?
    /// The rate limit for the frames of one socket; nil: no limit.
    package var frameRate: Rate?
    /// The memory for all answers, in bytes.
    package var answerBytes = AnswerMemory.standardBytes
    /// The time limits of requests.
    package var requests = RequestMachine.Settings()
    /// The origins of web pages that can use the server.
    package var allowedOrigins = AllowedOrigins.none

    /// The number of homes: 1, or 2 in tests of the server. Two homes have half of the shards each, and are reached over links.
    package var homes = 1
    package static let mostHomes = 2

    package var store: StoreSettings
    package var sweepSeconds: Int

    package var rateLimits: RateLimits.Settings
    package var clientAddress: ClientAddress
    /// The time without a connection after which an anonymous device is removed.
    package var anonymousIdleSeconds: Int
    /// The time after which an anonymous device without a channel is removed.
    package var anonymousUnusedSeconds: Int

    /// The time without activity after which a registered device is removed.
    package var inactiveSeconds: Int
    /// The time after which a suspended device is removed.
    package var suspendedSeconds: Int

    /// The settings of calls to backends that watch their tokens.
    package var outward: OutwardSettings

    /// The settings of the vendors' push services.
    package var gateways: GatewaySettings

    package var attachments = AttachmentLimits()
    /// Whether uploaders receive an interim response 104 (draft-ietf-httpbis-resumable-upload).
    package var announcesUploadResumption = true

    /// The address that serves `/metrics`; nil disables metrics.
    package var metrics: (host: String, port: Int)?

    /// The socket of the service manager, which receives the states ready, stopping and running; nil without a service manager.
    package var notifySocket: NotifySocket?

    /// The longest duration of a stop.
    package var stopSeconds: Int

    var quotas: ConnectionQuotas.Limits {
        .init(
            connectionsPerAddress: connectionsPerAddress ?? max(1, maximumConnections / 4),
            socketsPerAddress: socketsPerAddress ?? max(1, maximumSockets / 4))
    }

    package var listenPlaces: [ListenPlace] {
        if !inheritedSockets.isEmpty { return inheritedSockets.map(ListenPlace.inherited) }
        return [unixSocket.map(ListenPlace.unix) ?? .address(host: host, port: port)]
    }

    /// The prefix of addresses if no public URL is set.
    package var listenURL: String { unixSocket == nil ? "http://\(HostAndPort.text(host, port))" : "http://localhost" }

    /// Whether the addresses that the server returns are useless outside of this machine. This is so if no public URL is set and
    /// the server listens on all addresses, or on a socket without a host name.
    package var lacksPublicURL: Bool {
        publicURL == nil
            && (unixSocket != nil || !inheritedSockets.isEmpty || ["0.0.0.0", "::", "[::]", "*"].contains(host))
    }

    package init(host: String = "127.0.0.1", port: Int = 8080, dataDirectory: String) {
        self.host = host
        self.port = port
        self.dataDirectory = dataDirectory
        maximumSockets = 200_000
        helloTimeoutSeconds = 5
        keepAliveSeconds = 45
        keepAliveAnswerSeconds = 10
        window = DeliveryMachine.Limits()
        maximumConnections = 20_000
        frameRate = Rate(perSecond: 2000, burst: 10_000)
        store = StoreSettings()
        sweepSeconds = 1
        rateLimits = RateLimits.Settings()
        clientAddress = ClientAddress()
        anonymousIdleSeconds = 30 * 86_400
        anonymousUnusedSeconds = 86_400
        inactiveSeconds = 270 * 86_400
        suspendedSeconds = 30 * 86_400
        outward = OutwardSettings()
        gateways = GatewaySettings()
        stopSeconds = 20
    }
}
