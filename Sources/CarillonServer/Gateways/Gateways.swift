import CarillonAPNs
package import CarillonBasics
package import CarillonCore
package import CarillonWire
import Crypto
package import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The credentials of apps, and the ways to vendors' services that are open with them.
package final class Gateways: Sendable {
    private struct State {
        var open: [PushQueue: any PushGateway] = [:]
        /// Push queues whose credentials cannot be used, and why.
        var unusable: [PushQueue: String] = [:]
        var names: [AppSerial: AppID] = [:]
        var isOpen = false
        /// Whether the ways are open for all credentials that there were.
        var areAllOpen = false
        /// The outboxes of the homes.
        var outboxes: [Outbox] = []
        /// The outboxes whose pushes are sent.
        var senders: Set<ObjectIdentifier> = []
    }

    private let documents: AppDocuments
    private let apps: any AppStore
    private let sealer: SecretSealer
    private let isKeyRingWrapped: Bool
    private let settings: GatewaySettings
    private let rendering: PushRendering
    private let texts: AlertTexts
    private let time: TimeSource
    private let logger: Logger
    private let state = Mutex(State())
    /// What is in use is what was stored last.
    private let turns = Turns()

    package init(
        apps: any AppStore, documents: AppDocuments, keys: [TokenKey], isKeyRingWrapped: Bool, settings: GatewaySettings,
        time: TimeSource, random: RandomSource, logger: Logger
    ) {
        self.apps = apps
        self.documents = documents
        sealer = SecretSealer(keys: keys, for: .gateway, random: random)
        self.isKeyRingWrapped = isKeyRingWrapped
        self.settings = settings
        let key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: keys[keys.count - 1].bytes), info: Array("carillon collapse".utf8),
            outputByteCount: 32)
        rendering = PushRendering(key: key)
        texts = AlertTexts(documents: documents)
        self.time = time
        self.logger = logger
    }

    /// Adds the outbox of a home. The outbox is informed of changed credentials from now on.
    package func serve(_ outbox: Outbox) { state.withLock { $0.outboxes.append(outbox) } }

    // MARK: Sending

    /// Whether pushes of the push queue can be sent. In the environment `test` they always can.
    package func isConfigured(_ queue: PushQueue) -> Bool {
        queue.environment == .test || state.withLock { $0.open[queue] != nil }
    }

    func gateway(_ queue: PushQueue) -> (any PushGateway)? {
        state.withLock { state in
            if let open = state.open[queue] { return open }
            guard queue.environment == .test else { return nil }
            let gateway = TestGateway(app: queue.app, rendering: rendering, texts: texts, time: time)
            state.open[queue] = gateway
            return gateway
        }
    }

    /// What would have been sent in the environment `test`, the oldest first.
    package func testPushes(of app: AppSerial) -> [TestGateway.Sent] {
        let queue = PushQueue(app: app, environment: .test)
        return (state.withLock { $0.open[queue] } as? TestGateway)?.remembered ?? []
    }

    /// Opens the gateways of all stored credentials, if they are not open. Credentials that cannot be used are logged, and shown
    /// by ``faults``.
    ///
    /// - Parameter outbox: The outbox whose pushes are sent, until ``close(for:)``.
    package func open(for outbox: Outbox? = nil) async throws {
        if let outbox { state.withLock { _ = $0.senders.insert(ObjectIdentifier(outbox)) } }
        try await turns.take {
            let isDone = self.state.withLock { state in
                state.isOpen = true
                return state.areAllOpen
            }
            if isDone { return }
            for (app, serial) in try await self.documents.apps(with: .credential) {
                for credential in try await self.stored(of: app, serial) { self.open(credential) }
            }
            self.state.withLock { $0.areAllOpen = true }
        }
    }

    /// Returns the credentials of an app, ordered by environment.
    private func stored(of app: AppID, _ serial: AppSerial) async throws -> [GatewayCredential] {
        var credentials: [GatewayCredential] = []
        for environment in PushEnvironment.allCases.sorted(by: { $0.rawValue < $1.rawValue }) {
            let queue = PushQueue(app: serial, environment: environment)
            // Credentials are read at a start and for operators: they would take the room of documents that are in use.
            if let document = try await documents.document(queue.credential) {
                credentials.append(try GatewayCredential(document, of: app, for: queue))
            }
        }
        return credentials
    }

    private func open(_ credential: GatewayCredential) {
        let queue = credential.queue
        state.withLock { $0.names[queue.app] = credential.app }
        do {
            guard let bytes = sealer.open(credential.sealed, for: queue.app.rawValue), let body = JSONValue(parsing: bytes)
            else {
                throw Refusal(
                    .credentialsInvalid,
                    "The push credentials were encrypted with a key that the server no longer has; set them again.")
            }
            let gateway = try APNsGateway(
                try GatewaySecret(body, of: credential.app), queue: queue, settings: settings, rendering: rendering,
                texts: texts, logger: logger)
            replace(queue, by: gateway, fault: nil)
        } catch {
            let reason = (error as? Refusal)?.detail ?? (error as? APNsError)?.message ?? "\(type(of: error))"
            logger.error(
                "cannot use the push credentials of an app; pausing its pushes",
                metadata: ["app": "\(credential.app)", "environment": "\(queue.environment)", "reason": "\(reason)"])
            replace(queue, by: nil, fault: reason)
        }
    }

    /// Whether a gateway can be made of it: those before go on to work until one that can takes their place.
    private func checkUsable(_ secret: GatewaySecret, _ queue: PushQueue) async throws {
        let gateway: APNsGateway
        do {
            gateway = try APNsGateway(
                secret, queue: queue, settings: settings, rendering: rendering, texts: texts, logger: logger)
        } catch let error as APNsError {
            throw Refusal(.credentialsInvalid, error.message)
        }
        await gateway.close()
    }

    private func replace(_ queue: PushQueue, by open: (any PushGateway)?, fault: String?) {
        let (earlier, outboxes) = state.withLock { state in
            let earlier = state.open[queue]
            state.open[queue] = open
            state.unusable[queue] = fault
            return (earlier, state.outboxes)
        }
        for outbox in outboxes { outbox.renewed(queue) }
        // Ends by itself, when what is under way has its answers.
        if let earlier { Task { await earlier.close() } }
    }

    /// Stops sending the pushes of an outbox. With the last outbox, the gateways are closed.
    func close(for outbox: Outbox) async {
        let isLast = state.withLock { state in
            state.senders.remove(ObjectIdentifier(outbox))
            return state.senders.isEmpty
        }
        if isLast { await close() }
    }

    func close() async {
        let all = state.withLock { state in
            let all = Array(state.open.values)
            (state.open, state.areAllOpen) = ([:], false)
            return all
        }
        for gateway in all { await gateway.close() }
    }

    /// The pushes of all homes that have no answer yet.
    var underWay: Int { state.withLock { $0.outboxes }.reduce(0) { $0 + $1.underWay } }

    /// The push queues whose pushes wait because of a fault, and why.
    package var faults: [PushQueue: String] {
        let (outboxes, unusable) = state.withLock { ($0.outboxes, $0.unusable) }
        var reasons = unusable
        for outbox in outboxes { reasons.merge(outbox.faults.mapValues(\.reason)) { first, _ in first } }
        return reasons
    }

    /// The same, in the words of the API, in order.
    package var held: [(app: String, environment: String, reason: String)] {
        let names = state.withLock { $0.names }
        return faults.map { queue, reason in
            (names[queue.app]?.text ?? "\(queue.app.rawValue)", queue.environment.rawValue, reason)
        }.sorted { ($0.app, $0.environment) < ($1.app, $1.environment) }
    }

    // MARK: Credentials

    /// Checks credentials and sets them, in place of those before.
    ///
    /// - Throws: ``Refusal``; then those before go on to work.
    package func set(
        _ body: JSONValue, of app: AppID, for environment: PushEnvironment
    ) async throws -> (credential: GatewayCredential, summary: GatewaySummary) {
        guard environment != .test else {
            throw Refusal(
                .fieldInvalid,
                "The environment \"test\" needs no push credentials; set them for \"production\" or \"sandbox\".")
        }
        guard isKeyRingWrapped else {
            throw Refusal(
                .keyFileMissing,
                "The server has no wrapping key file. Start it with --key-file first: the file's key encrypts the server's keys, so that a copy of the database reveals nothing."
            )
        }
        guard let known = try await apps.app(app) else { throw Self.unknown(app) }
        let secret = try GatewaySecret(body, of: app)
        let now = time.now()
        let summary = try secret.check(
            for: environment, at: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000))
        let queue = PushQueue(app: known.serial, environment: environment)
        try await checkUsable(secret, queue)
        let credential = GatewayCredential(
            app: app, queue: queue,
            sealed: try sealer.seal(secret.json.bytes, for: known.serial.rawValue),
            summary: String(decoding: try JSONEncoder().encode(summary), as: UTF8.self), setAt: now)
        try await turns.take {
            guard try await self.documents.put(credential.bytes, as: queue.credential, at: now) != nil else {
                throw Self.unknown(app)
            }
            if self.state.withLock({ $0.isOpen }) { self.open(credential) }
        }
        return (credential, summary)
    }

    package func credentials(
        of app: AppID
    ) async throws -> [(credential: GatewayCredential, summary: GatewaySummary, fault: String?)] {
        guard let known = try await apps.app(app) else { throw Self.unknown(app) }
        let faults = faults
        return try await stored(of: app, known.serial).map { credential in
            let summary = try JSONDecoder().decode(GatewaySummary.self, from: Data(credential.summary.utf8))
            return (credential, summary, faults[credential.queue])
        }
    }

    package func remove(of app: AppID, for environment: PushEnvironment) async throws {
        try await turns.take {
            let queue = try await self.apps.app(app).map { PushQueue(app: $0.serial, environment: environment) }
            guard let queue, try await self.documents.remove(queue.credential) else {
                throw Refusal(
                    .credentialsUnknown, "The app has no push credentials for the environment \"\(environment.rawValue)\".")
            }
            self.replace(queue, by: nil, fault: nil)
        }
    }

    /// The app was deleted.
    package func forget(_ app: AppSerial) async {
        _ = try? await turns.take {
            for environment in PushEnvironment.allCases {
                self.replace(PushQueue(app: app, environment: environment), by: nil, fault: nil)
            }
            self.state.withLock { $0.names[app] = nil }
        }
    }

    /// How an app is called, for the log.
    func name(of app: AppSerial) -> String { state.withLock { $0.names[app]?.text } ?? "\(app.rawValue)" }

    // MARK: Alerts

    package func setAlert(_ text: AlertText?, of app: AppID) async throws {
        guard let known = try await apps.app(app) else { throw Self.unknown(app) }
        let key = AlertTexts.key(known.serial)
        guard let text else {
            let isRemoved = try await documents.remove(key)
            // The app had no alert text, or was deleted since it was looked up.
            if !isRemoved, try await apps.app(app) == nil { throw Self.unknown(app) }
            return
        }
        guard try await documents.put(text.json.bytes, as: key, at: time.now()) != nil else { throw Self.unknown(app) }
    }

    package func alert(of app: AppID) async throws -> AlertText? {
        guard let known = try await apps.app(app) else { throw Self.unknown(app) }
        return try await texts.text(of: known.serial)
    }

    private static func unknown(_ app: AppID) -> Refusal { Refusal(.appUnknown, "There is no app \"\(app)\".") }
}
