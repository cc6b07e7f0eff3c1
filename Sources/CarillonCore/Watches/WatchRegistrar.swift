import CarillonBasics
package import CarillonWire
import Metrics

/// Stores, returns and removes the watches of backends on their channel tokens.
package struct WatchRegistrar: Sendable {
    package struct Settings: Equatable, Sendable {
        package var rules: CallRules
        package var shortestIntervalSeconds: Int
        package var limits: WatchLimits

        package init(
            rules: CallRules = CallRules(), shortestIntervalSeconds: Int = Limits.pingIntervalSeconds.lowerBound,
            limits: WatchLimits = WatchLimits()
        ) {
            self.rules = rules
            self.limits = limits
            self.shortestIntervalSeconds = shortestIntervalSeconds
        }
    }

    package struct Put: Equatable, Sendable {
        package var watch: Watch
        package var isNew: Bool
        /// The signing secret if this call made it.
        package var secret: SigningSecret?
    }

    private let watches: any WatchStore
    private let publisher: Publisher
    private let notifier: ChannelNotifier
    private let sealer: SecretSealer
    private let settings: Settings
    private let time: TimeSource
    private let random: RandomSource

    package init(
        watches: any WatchStore, publisher: Publisher, notifier: ChannelNotifier, sealer: SecretSealer, settings: Settings,
        time: TimeSource, random: RandomSource
    ) {
        self.watches = watches
        self.publisher = publisher
        self.notifier = notifier
        self.sealer = sealer
        self.settings = settings
        self.time = time
        self.random = random
    }

    private static let defaultIntervalSeconds = 60

    /// - Parameter vapid: The VAPID credentials, which a restricted channel requires.
    package func put(_ request: PutWatch, token: String, vapid: VapidCredentials?) async throws -> Put {
        let channel = try await channel(token, vapid)
        let now = time.now()
        let ping = try ping(request)
        let disconnectAddress = try request.disconnectAddress.map(address)
        guard ping != nil || disconnectAddress != nil else {
            throw Refusal(
                .fieldMissing,
                "A watch must have a \"pingAddress\", a \"disconnectAddress\", or both. To end the watch, use DELETE.")
        }
        let earlier = try await watches.watch(of: channel.serial)
        try await vouch(for: earlier) { ping == nil || $0 == .tokenLost }
        // A secret that cannot be opened cannot sign calls. A new registration receives a new secret.
        let isLost = earlier.map { sealer.open($0.sealed.secret, for: channel.serial.rawValue) == nil } ?? false
        let renewsSecret = isLost || request.renewSecret == true
        let secret = SigningSecret(bytes: random.bytes(SigningSecret.byteCount))
        let sealed = Watch.Sealed(
            secret: try sealer.seal(secret.bytes, for: channel.serial.rawValue),
            token: try sealer.seal(Array(token.utf8), for: channel.serial.rawValue))
        let result = try await watches.putWatch(
            WatchRequest(
                channel: channel.serial, ping: ping,
                firstDueAt: ping.map {
                    PingMachine.firstDue(every: $0.intervalSeconds, at: now, chance: random.next())
                },
                disconnectAddress: disconnectAddress, sealed: sealed, callbackID: WebhookID.make(random),
                renewsSecret: renewsSecret, limits: settings.limits),
            at: now)
        switch result {
        case .put(let watch, let isNew):
            return Put(watch: watch, isNew: isNew, secret: isNew || renewsSecret ? secret : nil)
        case .channelGone:
            throw Publisher.channelGone
        case .tooManyOfDevice:
            throw tooMany(
                "A device can have up to \(settings.limits.perDevice) watches; end one of them first.", of: "device")
        case .tooManyOfApp:
            throw tooMany("An app can have up to \(settings.limits.perApp) watches; end one of them first.", of: "app")
        }
    }

    private func tooMany(_ sentence: String, of owner: String) -> Refusal {
        ServerMetric.watchesRefused.counter(owner).increment()
        return Refusal(.watchesTooMany, sentence)
    }

    package func show(token: String, vapid: VapidCredentials?) async throws -> Watch {
        let channel = try await channel(token, vapid)
        guard let watch = try await watches.watch(of: channel.serial) else { throw Self.unknown }
        return watch
    }

    package func remove(token: String, vapid: VapidCredentials?) async throws {
        let channel = try await channel(token, vapid)
        try await vouch(for: try await watches.watch(of: channel.serial)) { _ in true }
        guard try await watches.removeWatch(of: channel.serial) else { throw Self.unknown }
    }

    private func channel(_ token: String, _ vapid: VapidCredentials?) async throws -> PushChannel {
        let channel = try await publisher.channel(of: token)
        try publisher.authorize(vapid, for: channel)
        return channel
    }

    /// Notes that the backend sent a request with its token, so it can be reached and has the token. Without further pings, the
    /// app would never be notified of the recovery, and a token that is lost again would not be reported.
    private func vouch(for watch: Watch?, when refutes: (PingFailure) -> Bool) async throws {
        guard let watch, let notified = watch.machine.notified, refutes(notified) else { return }
        _ = try await notifier.notify(.recovered, on: watch, with: .vouchedFor(watch.channel))
    }

    private func ping(_ request: PutWatch) throws(Refusal) -> Watch.Ping? {
        guard let text = request.pingAddress else {
            guard request.pingIntervalSeconds == nil else {
                throw Refusal(.fieldMissing, "\"pingIntervalSeconds\" needs a \"pingAddress\".")
            }
            return nil
        }
        let allowed = settings.shortestIntervalSeconds...Limits.pingIntervalSeconds.upperBound
        let interval = request.pingIntervalSeconds ?? max(Self.defaultIntervalSeconds, allowed.lowerBound)
        guard allowed.contains(interval) else {
            throw Refusal(
                .fieldInvalid, "\"pingIntervalSeconds\" must be from \(allowed.lowerBound) to \(allowed.upperBound).")
        }
        return Watch.Ping(address: try address(text), intervalSeconds: interval)
    }

    private func address(_ text: String) throws(Refusal) -> CallAddress {
        let address = try CallAddress(text)
        try settings.rules.check(address)
        return address
    }

    private static let unknown = Refusal(.watchUnknown, "The channel token has no watch; register one with PUT.")
}

/// Makes the identifier of one event, as in Standard Webhooks: `msg_` and 128 random bits.
enum WebhookID {
    static func make(_ random: RandomSource) -> String { "msg_" + Base64URL.encode(random.bytes(16)) }
}
