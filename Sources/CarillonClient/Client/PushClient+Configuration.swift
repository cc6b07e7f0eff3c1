import CarillonWire
public import Logging

extension PushClient {
    /// Everything that a client must know before it runs.
    public struct Configuration: Sendable {
        /// The server's base address, `https://push.example.com` or `http://127.0.0.1:8080`. A path is kept.
        public var server: String
        /// The app's name on the server: `com.example.app`.
        public var app: String
        /// A key with the role `client`. It is sent once, to register the device, and never logged. A device that is
        /// registered needs none.
        public var clientKey: String?
        /// The directory of the durable state, made if it does not exist.
        ///
        /// It belongs to one client at a time, and must not lie in a container that several programs share. It can be moved between two
        /// runs: requests and transfers that were under way go on.
        public var storageDirectory: String
        /// A directory that the app shares with its notification service extension, made if it does not exist: the client keeps
        /// the keys of encrypted channels there, and learns there what the extension showed. Nil without such an extension. What
        /// cannot be written there is logged, and nothing else suffers.
        public var sharedDirectory: String?
        /// A directory that apps of one user of this machine share, made with mode 0700 if it does not exist, and used with no other: they
        /// ask services of each other there, and by the server where that fails. Of 60 bytes at most. Nil: by the server alone.
        public var localDirectory: String?
        /// The logger of the client. By default it has the label `carillon.client` and the level `warning`: it writes failures to connect,
        /// each with its address and reason, where the app's logging goes, or to standard error. No secret and no payload is logged.
        public var logger: Logger
        /// A file of certificates to trust instead of the system's, for servers with a private authority: certificates in PEM form,
        /// by the lax rules of RFC 7468 section 2, or one certificate in DER.
        public var trustRootsPath: String?
        /// How the client waits between attempts to reach the server.
        public var backOff: BackOff
        /// How long one attempt may take, from name resolution until the server has accepted the connection.
        public var connectTimeout: Duration
        /// How long a connection may be silent before the client asks for a sign of life; nil takes what the server
        /// proposes.
        public var keepAlive: Duration?
        /// How many messages are kept for a channel that is read slowly, or not at all.
        public var channelBuffer: ChannelBuffer
        /// Whether the app shows itself what its subscriptions fire while it is connected, from ``PushDevice/firings``. Otherwise it
        /// is left to Apple's push service, as while the app sleeps.
        public var receivesFirings: Bool

        /// Makes a configuration; what is not given has its default.
        public init(
            server: String,
            app: String,
            clientKey: String? = nil,
            storageDirectory: String,
            sharedDirectory: String? = nil,
            localDirectory: String? = nil,
            logger: Logger? = nil,
            trustRootsPath: String? = nil,
            backOff: BackOff = BackOff(),
            connectTimeout: Duration = .seconds(10),
            keepAlive: Duration? = nil,
            channelBuffer: ChannelBuffer = ChannelBuffer(),
            receivesFirings: Bool = false
        ) {
            self.server = server
            self.app = app
            self.clientKey = clientKey
            self.storageDirectory = storageDirectory
            self.sharedDirectory = sharedDirectory
            self.localDirectory = localDirectory
            self.logger = logger ?? .forWarnings("carillon.client")
            self.trustRootsPath = trustRootsPath
            self.backOff = backOff
            self.connectTimeout = connectTimeout
            self.keepAlive = keepAlive
            self.channelBuffer = channelBuffer
            self.receivesFirings = receivesFirings
        }
    }

    /// How long the client waits between attempts: the wait doubles with each failure, up to a maximum, and is
    /// shortened by chance, so that many clients do not come back at once.
    public struct BackOff: Hashable, Sendable {
        /// The wait after the first failure.
        public var initial: Duration
        /// The longest wait, unless the server asks for more.
        public var maximum: Duration
        /// Which part of each wait is left to chance, from 0 to 1.
        public var jitter: Double

        /// Makes a schedule; without arguments, half a second to one minute, half of it left to chance.
        public init(initial: Duration = .milliseconds(500), maximum: Duration = .seconds(60), jitter: Double = 0.5) {
            self.initial = initial
            self.maximum = maximum
            self.jitter = jitter
        }
    }
}

extension PushClient {
    /// How much is kept in the durable storage for each channel until the app has handled it.
    ///
    /// When a channel's buffer is full, what comes for it is refused: its sender can see the outcome `failed` with code 303,
    /// the log names the channel, and ``PushClient/lastFailure`` is ``PushError/Code/bufferFull``. What was taken before
    /// stays, as its senders were notified that it was received. Other channels go on.
    public struct ChannelBuffer: Hashable, Sendable {
        /// The most messages.
        public var messages: Int
        /// The most bytes of their bodies.
        public var bytes: Int

        /// Makes a bound; without arguments that of a device's inbox on the server, 10,000 messages and 32 MiB.
        public init(messages: Int = 10_000, bytes: Int = 32 << 20) {
            self.messages = messages
            self.bytes = bytes
        }
    }
}

extension PushClient.Configuration {
    func checkedServer() throws(PushError) -> WebAddress {
        guard let address = WebAddress(http: server), !server.contains("?") else {
            throw PushError(
                .configurationInvalid,
                "server: \"\(server)\" is not an http: or https: address such as https://push.example.com.")
        }
        guard AppID(app) != nil else {
            throw PushError(.configurationInvalid, "app: \"\(app)\" is not a name such as com.example.app.")
        }
        // Anything else could not stand in an HTTP header.
        guard clientKey.map({ !$0.isEmpty && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }) ?? true else {
            throw PushError(.configurationInvalid, "clientKey: a key is printable ASCII without spaces, and not empty.")
        }
        guard backOff.initial > .zero, backOff.maximum >= backOff.initial, (0...1).contains(backOff.jitter) else {
            throw PushError(
                .configurationInvalid,
                "backOff: initial must be positive, maximum not smaller, and jitter between 0 and 1.")
        }
        guard connectTimeout > .zero, keepAlive.map({ $0 > .zero }) ?? true else {
            throw PushError(.configurationInvalid, "connectTimeout and keepAlive must be positive.")
        }
        guard channelBuffer.messages > 0, channelBuffer.bytes >= Limits.messageBodyBytes else {
            throw PushError(
                .configurationInvalid,
                "channelBuffer: it must hold at least one message, of up to \(Limits.messageBodyBytes) bytes.")
        }
        return address
    }
}
