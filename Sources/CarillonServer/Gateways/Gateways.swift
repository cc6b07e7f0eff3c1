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

/// The push credentials of apps, and the open gateways that use them.
package final class Gateways: Sendable {
    private struct State {
        var open: [PushQueue: any PushGateway] = [:]
        /// Push queues whose push credentials cannot be used, with the reasons.
        var unusable: [PushQueue: String] = [:]
        var names: [AppSerial: AppID] = [:]
        var isOpen = false
        /// Whether the gateways of all push credentials in the store have been opened.
        var areAllOpen = false
        /// The outboxes of the homes.
        var outboxes: [Outbox] = []
        /// The outboxes that send pushes.
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
    /// Changes of the store and of the open gateways are made in the same order, so that the last stored push credentials are
    /// used.
    private let changes = SerialTasks()

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

    /// Adds the outbox of a home. From now on, the outbox is notified of changed push credentials.
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

    /// Returns the pushes of the environment `test`, which were stored instead of sent, the oldest first.
    package func testPushes(of app: AppSerial) -> [TestGateway.Sent] {
        let queue = PushQueue(app: app, environment: .test)
        return (state.withLock { $0.open[queue] } as? TestGateway)?.remembered ?? []
    }

    /// Opens the gateways of all stored push credentials, unless they are open. Push credentials that cannot be used are logged,
    /// and appear in ``faults``.
    ///
    /// - Parameter outbox: The outbox that sends pushes, until ``close(for:)``.
    package func open(for outbox: Outbox? = nil) async throws {
        if let outbox { state.withLock { _ = $0.senders.insert(ObjectIdentifier(outbox)) } }
        try await changes.run {
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

    /// Returns the push credentials of an app, ordered by environment.
    private func stored(of app: AppID, _ serial: AppSerial) async throws -> [GatewayCredential] {
        var credentials: [GatewayCredential] = []
        for environment in PushEnvironment.allCases.sorted(by: { $0.rawValue < $1.rawValue }) {
            let queue = PushQueue(app: serial, environment: environment)
            // Push credentials are read at the start and for operators. In the cache they would displace documents that are in
            // use.
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

    /// Checks that a gateway can use the push credentials. The earlier ones stay in use until valid ones replace them.
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
        // The task ends when all pending pushes are answered.
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

    /// The number of pushes of all homes that wait for an answer.
    var underWay: Int { state.withLock { $0.outboxes }.reduce(0) { $0 + $1.underWay } }

    /// The push queues that are paused because of a fault, with the reasons.
    package var faults: [PushQueue: String] {
        let (outboxes, unusable) = state.withLock { ($0.outboxes, $0.unusable) }
        var reasons = unusable
        for outbox in outboxes { reasons.merge(outbox.faults.mapValues(\.reason)) { first, _ in first } }
        return reasons
    }

    /// The paused push queues in the form of the API, sorted.
    package var pausedQueues: [(app: String, environment: String, reason: String)] {
        let names = state.withLock { $0.names }
        return faults.map { queue, reason in
            (names[queue.app]?.text ?? "\(queue.app.rawValue)", queue.environment.rawValue, reason)
        }.sorted { ($0.app, $0.environment) < ($1.app, $1.environment) }
    }

    // MARK: Credentials

    /// Checks push credentials and stores them in place of the earlier ones.
    ///
    /// - Throws: ``Refusal``. In this case the earlier push credentials stay in use.
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
        let serial = try await apps.existing(app)
        let secret = try GatewaySecret(body, of: app)
        let now = time.now()
        let summary = try secret.check(
            for: environment, at: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000))
        let queue = PushQueue(app: serial, environment: environment)
        try await checkUsable(secret, queue)
        let credential = GatewayCredential(
            app: app, queue: queue,
            sealed: try sealer.seal(secret.json.bytes, for: serial.rawValue),
            summary: String(decoding: try JSONEncoder().encode(summary), as: UTF8.self), setAt: now)
        try await changes.run {
            guard try await self.documents.put(credential.bytes, as: queue.credential, at: now) != nil else {
                throw Refusal.noApp(app)
            }
            if self.state.withLock({ $0.isOpen }) { self.open(credential) }
        }
        return (credential, summary)
    }

    package func credentials(
        of app: AppID
    ) async throws -> [(credential: GatewayCredential, summary: GatewaySummary, fault: String?)] {
        let serial = try await apps.existing(app)
        let faults = faults
        return try await stored(of: app, serial).map { credential in
            let summary = try JSONDecoder().decode(GatewaySummary.self, from: Data(credential.summary.utf8))
            return (credential, summary, faults[credential.queue])
        }
    }

    package func remove(of app: AppID, for environment: PushEnvironment) async throws {
        try await changes.run {
            let queue = try await self.apps.app(app).map { PushQueue(app: $0.serial, environment: environment) }
            guard let queue, try await self.documents.remove(queue.credential) else {
                throw Refusal(
                    .credentialsUnknown, "The app has no push credentials for the environment \"\(environment.rawValue)\".")
            }
            self.replace(queue, by: nil, fault: nil)
        }
    }

    /// Removes the gateways of a deleted app.
    package func forget(_ app: AppSerial) async {
        _ = try? await changes.run {
            for environment in PushEnvironment.allCases {
                self.replace(PushQueue(app: app, environment: environment), by: nil, fault: nil)
            }
            self.state.withLock { $0.names[app] = nil }
        }
    }

    /// Returns the name of an app, for the log.
    func name(of app: AppSerial) -> String { state.withLock { $0.names[app]?.text } ?? "\(app.rawValue)" }

    // MARK: Alerts

    package func setAlert(_ text: AlertText?, of app: AppID) async throws {
        let serial = try await apps.existing(app)
        let key = AlertTexts.key(serial)
        guard let text else {
            let isRemoved = try await documents.remove(key)
            // The app had no alert text, or was deleted meanwhile.
            if !isRemoved, try await apps.app(app) == nil { throw Refusal.noApp(app) }
            return
        }
        guard try await documents.put(text.json.bytes, as: key, at: time.now()) != nil else { throw Refusal.noApp(app) }
    }

    package func alert(of app: AppID) async throws -> AlertText? {
        let serial = try await apps.existing(app)
        return try await texts.text(of: serial)
    }
}
