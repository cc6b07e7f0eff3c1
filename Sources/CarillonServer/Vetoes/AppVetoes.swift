import CarillonBasics
package import CarillonCore
package import CarillonWire
import Logging
import Metrics
import Synchronization

/// Asks apps' own servers, each signed as other calls to back ends are (Standard Webhooks). An app is allowed nothing while its server
/// does not answer.
package final class AppVetoes: Vetoes {
    private struct Entry {
        var serial: AppSerial
        /// Nil where it cannot be read any more.
        var address: CallAddress?
        /// Nil where it was sealed with a key that is gone.
        var secret: SigningSecret?
        var setAt: Timestamp
        /// Whether the last question had no answer that counts.
        var isFailing = false
        var underWay = 0
        var underWayOfDevices: [DeviceID: Int] = [:]
    }

    private let store: any VetoStore
    private let apps: any AppStore
    private let sealer: SecretSealer
    private let source: VetoSource
    private let rules: CallRules
    private let time: TimeSource
    private let random: RandomSource
    private let logger: Logger
    private let entries: Mutex<[AppID: Entry]>

    /// Questions of one app that wait for their answers.
    static let mostUnderWay = 64
    /// The same of one device.
    static let mostUnderWayOfDevice = 4
    /// How long a device waits before it asks again, unless the app's server asks for a longer wait.
    private static let retrySeconds = 5
    private static let codeBytes = 128
    private static let detailBytes = 1024
    private let allowed = ServerMetric.vetoes.counter("allowed")
    private let vetoed = ServerMetric.vetoes.counter("vetoed")
    private let unavailable = ServerMetric.vetoes.counter("unavailable")

    init(
        store: any VetoStore & AppStore, keys: [TokenKey], source: VetoSource, rules: CallRules, time: TimeSource,
        random: RandomSource, logger: Logger
    ) async throws {
        self.store = store
        apps = store
        sealer = SecretSealer(keys: keys, for: .veto, random: random)
        self.source = source
        self.rules = rules
        self.time = time
        self.random = random
        self.logger = logger
        entries = Mutex([:])
        try await read()
    }

    /// What is on disk counts, whoever wrote last.
    private func read() async throws {
        let stored = try await store.vetoes()
        entries.withLock { entries in
            let before = entries
            entries = [:]
            for (app, veto) in stored {
                var entry = Entry(
                    serial: veto.app, address: try? CallAddress(veto.address),
                    secret: sealer.open(veto.sealed, for: veto.app.rawValue).map(SigningSecret.init), setAt: veto.setAt)
                entry.isFailing = before[app]?.isFailing ?? false
                entry.underWay = before[app]?.underWay ?? 0
                entry.underWayOfDevices = before[app]?.underWayOfDevices ?? [:]
                entries[app] = entry
            }
        }
    }

    // MARK: Keeping

    /// Names the server that is asked from now on, with a new secret.
    package func set(_ text: String, of app: AppID) async throws -> (address: String, secret: String, setAt: Timestamp) {
        let address: CallAddress
        do throws(Refusal) {
            address = try CallAddress(text)
            try rules.check(address)
        } catch {
            throw Refusal(.vetoInvalid, error.detail)
        }
        guard address.isSecure else {
            throw Refusal(.vetoInvalid, "The address must be https: what is asked names push tokens.")
        }
        let serial = try await serial(of: app)
        let secret = SigningSecret(bytes: random.bytes(SigningSecret.byteCount))
        let stored = StoredVeto(
            app: serial, address: address.text, sealed: try sealer.seal(secret.bytes, for: serial.rawValue),
            setAt: time.now())
        guard try await store.putVeto(stored) else { throw Self.unknown(app) }
        try await read()
        return (address.text, secret.text, stored.setAt)
    }

    package func address(of app: AppID) async throws -> (address: String, setAt: Timestamp) {
        let serial = try await serial(of: app)
        guard let entry = entries.withLock({ $0[app] }), entry.serial == serial else { throw Self.none }
        return (entry.address?.text ?? "", entry.setAt)
    }

    package func remove(of app: AppID) async throws {
        guard try await store.removeVeto(of: try await serial(of: app)) else { throw Self.none }
        try await read()
    }

    /// The app was deleted.
    package func forget(_ app: AppID) { entries.withLock { $0[app] = nil } }

    private func serial(of app: AppID) async throws -> AppSerial {
        guard let known = try await apps.app(app) else { throw Self.unknown(app) }
        return known.serial
    }

    private static func unknown(_ app: AppID) -> Refusal { Refusal(.appUnknown, "There is no app \"\(app)\".") }
    private static let none = Refusal(.vetoUnknown, "The app names no server that is asked.")

    // MARK: Asking

    package func isAsked(_ app: AppID) -> Bool { entries.withLock { $0[app] != nil } }

    package func ask(_ question: VetoQuestion, of app: AppID) async throws {
        guard let entry = try begin(app, question.device) else { return }
        defer { end(app, question.device) }
        guard let secret = entry.secret, let address = entry.address else {
            throw cannotAsk(
                "its secret was sealed with a key that is gone, or its address is none; it must be set again", app)
        }
        let (id, now) = ("msg_" + Base64URL.encode(random.bytes(16)), time.now())
        let body = question.json(app: app, at: now).bytes
        let answer = await source.ask(
            .init(
                address: address,
                headers: [
                    ("Content-Type", "application/json"), (WebhookHeaders.id, id),
                    (WebhookHeaders.timestamp, String(now.seconds)),
                    (WebhookHeaders.signature, secret.signature(id: id, seconds: now.seconds, body: body)),
                ], body: body))
        switch answer {
        case .answered(200..<300, _, _):
            allowed.increment()
            answered(app)
        case .answered(403, let body, _):
            vetoed.increment()
            answered(app)
            throw Self.veto(JSONValue(parsing: body))
        case .answered(let status, _, let wait): throw cannotAsk("it answered with the status \(status)", app, wait)
        case .failed(let reason): throw cannotAsk(reason, app)
        }
    }

    /// Nil where nobody is to be asked.
    private func begin(_ app: AppID, _ device: DeviceID?) throws(Refusal) -> Entry? {
        let (entry, isBusy): (Entry?, Bool) = entries.withLock { entries in
            guard let entry = entries[app] else { return (nil, false) }
            let ofDevice = device.map { entry.underWayOfDevices[$0, default: 0] } ?? 0
            guard entry.underWay < Self.mostUnderWay, ofDevice < Self.mostUnderWayOfDevice else { return (nil, true) }
            entries[app]?.underWay += 1
            if let device { entries[app]?.underWayOfDevices[device] = ofDevice + 1 }
            return (entry, false)
        }
        if isBusy { throw cannotAsk("too many questions wait for their answers", app) }
        return entry
    }

    private func end(_ app: AppID, _ device: DeviceID?) {
        entries.withLock { entries in
            guard let count = entries[app]?.underWay, count > 0 else { return }
            entries[app]?.underWay = count - 1
            guard let device, let ofDevice = entries[app]?.underWayOfDevices[device] else { return }
            entries[app]?.underWayOfDevices[device] = ofDevice > 1 ? ofDevice - 1 : nil
        }
    }

    private func answered(_ app: AppID) {
        let wasFailing = entries.withLock { entries in
            guard entries[app]?.isFailing == true else { return false }
            entries[app]?.isFailing = false
            return true
        }
        if wasFailing { logger.notice("an app's server answers again", metadata: ["app": "\(app)"]) }
    }

    /// The log withholds what is the same within a minute.
    ///
    /// - Parameter wait: The wait that the app's server asked for.
    private func cannotAsk(_ reason: String, _ app: AppID, _ wait: Duration? = nil) -> Refusal {
        unavailable.increment()
        entries.withLock { $0[app]?.isFailing = true }
        logger.warning("an app's server could not be asked", metadata: ["app": "\(app)", "reason": "\(reason)"])
        return Refusal(
            .vetoUnavailable, "The app's own server could not be asked whether this may be; try again later.",
            retryAfterSeconds: max(Self.retrySeconds, Int(wait?.components.seconds ?? 0)))
    }

    /// What it says is passed on as it is.
    private static func veto(_ body: JSONValue?) -> Refusal {
        var refusal = Refusal(.vetoed, "The app's own server does not allow it.")
        if case .string(let text)? = body?["detail"], (1...detailBytes).contains(text.utf8.count) { refusal.detail = text }
        switch body?["code"] {
        case .string(let code)? where (1...codeBytes).contains(code.utf8.count): refusal.appCode = code
        case .integer(let number)?: refusal.appCode = String(number)
        default: break
        }
        return refusal
    }
}
