package import CarillonCore

/// All that an operator can set.
package struct ServerSettings: Sendable {
    package var host: String
    package var port: Int
    /// The path of a Unix socket to listen on instead.
    package var unixSocket: String?
    /// Sockets to listen on instead of all that.
    package var inheritedSockets: [InheritedSocket] = []
    package var listenerRetry = ListenerRetry.Limits()
    /// What endpoints and message addresses begin with; no slash at the end. Nil: `http://host:port` of the listener.
    package var publicURL: String?
    /// Public URLs of earlier times, whose addresses stay valid.
    package var formerPublicURLs: [String] = []
    package static let mostFormerPublicURLs = 16
    package var dataDirectory: String
    /// The file with the key that wraps the key ring; nil while nothing is sealed that a copy of the data must not open.
    package var keyFile: String?
    /// The app under which devices come in that never registered; nil refuses them.
    package var anonymousApp: String?

    /// How many sockets are held at once; beyond it a handshake is answered with 503.
    package var maximumSockets: Int
    package var helloTimeoutSeconds: Int
    /// Less than the 60 seconds after which proxies such as nginx close an idle connection by default.
    package var keepAliveSeconds: Int
    package var keepAliveAnswerSeconds: Int
    /// How long a socket or a stream may take less than 4 KiB of what waits for it; then it is ended.
    package var stallSeconds: Int {
        get { requests.stallSeconds }
        set { requests.stallSeconds = newValue }
    }
    package var window: DeliveryMachine.Limits

    /// How many connections may be open for HTTP at once; one more is answered with 503. A socket is not among them.
    package var maximumConnections: Int
    /// The same of one address, or one network of IPv6; nil is a quarter.
    package var connectionsPerAddress: Int?
    /// How many sockets one address may have; nil is a quarter.
    package var socketsPerAddress: Int?
    /// Frames that one socket may send; nil: as many as come.
    package var frameRate: Rate?
    /// The memory for all answers, in bytes.
    package var answerBytes = AnswerMemory.standardBytes
    /// How long a peer may take for what.
    package var requests = RequestMachine.Settings()
    /// The pages of other origins that may use the server.
    package var allowedOrigins = AllowedOrigins.none

    /// The number of homes: 1, or 2 in tests of the server. Two homes have half of the shards each, and are reached over links.
    package var homes = 1
    package static let mostHomes = 2

    package var store: StoreSettings
    package var sweepSeconds: Int

    package var allowances: Allowances.Settings
    package var clientAddress: ClientAddress
    /// After so long without a connection an anonymous device is removed.
    package var anonymousIdleSeconds: Int
    /// The same of one that has no channel.
    package var anonymousUnusedSeconds: Int

    /// After so long without being seen a registered device is removed.
    package var inactiveSeconds: Int
    /// The same of one that was suspended for as long.
    package var suspendedSeconds: Int

    /// Calls to the back ends that watch their tokens.
    package var outward: OutwardSettings

    /// Vendors' push services.
    package var gateways: GatewaySettings

    package var attachments = AttachmentLimits()
    /// Whether uploaders are told 104 (draft-ietf-httpbis-resumable-upload) before the answer.
    package var tellsUploadResumption = true

    /// Where `/metrics` is answered; nil answers it nowhere.
    package var metrics: (host: String, port: Int)?

    /// Where the service manager hears that the server is ready, stops and works; nil without one.
    package var notifySocket: NotifySocket?

    /// How long a stop may take in all.
    package var stopSeconds: Int

    var shares: ConnectionShares.Limits {
        .init(
            connectionsPerAddress: connectionsPerAddress ?? max(1, maximumConnections / 4),
            socketsPerAddress: socketsPerAddress ?? max(1, maximumSockets / 4))
    }

    package var listenPlaces: [ListenPlace] {
        if !inheritedSockets.isEmpty { return inheritedSockets.map(ListenPlace.inherited) }
        return [unixSocket.map(ListenPlace.unix) ?? .address(host: host, port: port)]
    }

    /// What addresses begin with when no public URL is set.
    package var listenURL: String { unixSocket == nil ? "http://\(HostAndPort.text(host, port))" : "http://localhost" }

    /// Whether nobody but this machine, if anybody, could use the addresses that the server gives out: it listens
    /// everywhere or on a socket that says no name, and was not told under which name it is reached.
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
        allowances = Allowances.Settings()
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
