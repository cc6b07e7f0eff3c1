import CarillonWire
public import Logging

extension PushClient {
    /// The settings of a client.
    public struct Configuration: Sendable {
        /// The server's base address, `https://push.example.com` or `http://127.0.0.1:8080`. A path is kept.
        public var server: String
        /// The app's name on the server: `com.example.app`.
        public var app: String
        /// An API key with the role `client`. It is sent only to register the device, and never logged. A registered device needs
        /// no key.
        public var clientKey: String?
        /// The directory of the durable state. It is made if it does not exist.
        ///
        /// One client at a time can use it. It must not be in a container that several programs share. It can be moved between
        /// two runs: pending requests and transfers continue.
        public var storageDirectory: String
        /// A directory that the app shares with its notification service extension. It is made if it does not exist. The client
        /// stores the keys of encrypted channels there, and reads there which messages the extension showed. Nil without such an
        /// extension. If the client cannot write there, it logs the fault and continues.
        public var sharedDirectory: String?
        /// A directory that apps of one user of this machine share, for nothing else. It is made with mode 0700 if it does not
        /// exist. Apps call each other's services through it, and through the server if that fails. Its path has up to 60 bytes.
        /// Nil if all calls pass through the server.
        public var localDirectory: String?
        /// The logger of the client. By default it has the label `carillon.client` and the level `warning`, and writes to the
        /// app's log or to standard error. Failures to connect are logged with the address and the reason. Secrets and payloads
        /// are never logged.
        public var logger: Logger
        /// A file of certificates that are trusted instead of the system's, for servers with a private authority. The file has
        /// certificates in PEM form, by the lax rules of RFC 7468 section 2, or one certificate in DER.
        public var trustRootsPath: String?
        /// How the client waits between attempts to reach the server.
        public var backOff: BackOff
        /// The time limit of one attempt, from name resolution until the server has accepted the connection.
        public var connectTimeout: Duration
        /// How long a connection can be silent before the client sends a ping; nil uses the server's proposal.
        public var keepAlive: Duration?
        /// The limits of the messages that are kept for a channel with a slow reader or without a reader.
        public var channelBuffer: ChannelBuffer
        /// Whether the app receives the firings of its subscriptions from ``PushDevice/firings`` while it is connected, and shows
        /// them itself. Otherwise Apple's push service shows them, as while the app is not running.
        public var receivesFirings: Bool

        /// Makes a configuration. Settings that are left out have their defaults.
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

    /// How long the client waits between attempts. The wait doubles with each failure, up to a maximum. A random part of it is
    /// left out, so that many clients do not connect at once.
    public struct BackOff: Hashable, Sendable {
        /// The wait after the first failure.
        public var initial: Duration
        /// The longest wait, unless the server sets a longer one.
        public var maximum: Duration
        /// The random part of each wait, from 0 to 1.
        public var jitter: Double

        /// Makes a schedule. The defaults are half a second, one minute, and a random part of one half.
        public init(initial: Duration = .milliseconds(500), maximum: Duration = .seconds(60), jitter: Double = 0.5) {
            self.initial = initial
            self.maximum = maximum
            self.jitter = jitter
        }
    }
}

extension PushClient {
    /// The limits of the messages that are kept in the durable storage for each channel until the app has handled them.
    ///
    /// If a channel's buffer is full, further messages for it are rejected: the sender can see the outcome `failed` with code
    /// 303, the log names the channel, and ``PushClient/lastFailure`` is ``PushError/Code/bufferFull``. Messages that were
    /// accepted before stay, because their senders were notified of their receipt. Other channels are not affected.
    public struct ChannelBuffer: Hashable, Sendable {
        /// The most messages.
        public var messages: Int
        /// The most bytes of their bodies.
        public var bytes: Int

        /// Makes the limits. The defaults are those of a device's inbox on the server: 10,000 messages and 32 MiB.
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
        // Other characters are not valid in an HTTP header.
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
