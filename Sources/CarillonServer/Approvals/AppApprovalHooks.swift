import CarillonBasics
package import CarillonCore
package import CarillonWire
import Logging
import Metrics
import Synchronization

/// Calls the approval hooks of apps. The calls are signed like other calls to backends (Standard Webhooks). While the approval
/// hook of an app does not answer, all requests that need an approval are refused.
package final class AppApprovalHooks: ApprovalHooks {
    /// The approval hook of an app.
    private struct Hook: Sendable {
        /// Nil if the stored address cannot be read any more.
        var address: CallAddress?
        /// Nil if the secret was encrypted with a key that no longer exists.
        var secret: SigningSecret?
        var setAt: Timestamp
    }

    /// The state of an app's calls.
    private struct Questions {
        /// Whether the last call returned no valid answer.
        var isFailing = false
        var underWay = 0
        var underWayOfDevices: [DeviceID: Int] = [:]
    }

    private let documents: AppDocuments
    private let apps: any AppStore
    private let sealer: SecretSealer
    private let caller: ApprovalHookCaller
    private let rules: CallRules
    private let time: TimeSource
    private let random: RandomSource
    private let logger: Logger
    private let questions = Mutex<[AppSerial: Questions]>([:])

    /// The largest number of calls of one app that wait for an answer.
    static let mostUnderWay = 64
    /// The largest number of calls for one device that wait for an answer.
    static let mostUnderWayOfDevice = 4
    /// The delay after which a device should retry, unless the approval hook returns a longer one.
    private static let retrySeconds = 5
    private static let codeBytes = 128
    private static let detailBytes = 1024
    private let allowed = ServerMetric.approvalHooks.counter("allowed")
    private let refused = ServerMetric.approvalHooks.counter("vetoed")
    private let unavailable = ServerMetric.approvalHooks.counter("unavailable")

    init(
        apps: any AppStore, documents: AppDocuments, keys: [TokenKey], caller: ApprovalHookCaller, rules: CallRules,
        time: TimeSource, random: RandomSource, logger: Logger
    ) {
        self.apps = apps
        self.documents = documents
        sealer = SecretSealer(keys: keys, for: .approvalHook, random: random)
        self.caller = caller
        self.rules = rules
        self.time = time
        self.random = random
        self.logger = logger
    }

    private static func key(_ app: AppSerial) -> AppDocument.Key { AppDocument.Key(.approvalHook, of: app) }

    private func hook(of app: AppSerial) async throws -> Hook? {
        try await documents.value(of: Self.key(app)) { document -> Hook? in
            guard let document else { return nil }
            let parts = SealedDocument(document.bytes)
            return Hook(
                address: parts.flatMap { try? CallAddress($0.text) },
                secret: parts.flatMap { sealer.open($0.sealed, for: app.rawValue) }.map(SigningSecret.init),
                setAt: document.setAt)
        }
    }

    // MARK: Address

    /// Sets the address of the approval hook, and creates a new secret.
    package func set(_ text: String, of app: AppID) async throws -> (address: String, secret: String, setAt: Timestamp) {
        let address: CallAddress
        do throws(Refusal) {
            address = try CallAddress(text)
            try rules.check(address)
        } catch {
            throw Refusal(.approvalHookInvalid, error.detail)
        }
        guard address.isSecure else {
            throw Refusal(.approvalHookInvalid, "The address must be an https URL, because the calls contain push tokens.")
        }
        let serial = try await apps.existing(app)
        let secret = SigningSecret(bytes: random.bytes(SigningSecret.byteCount))
        let sealed = try sealer.seal(secret.bytes, for: serial.rawValue)
        let document = SealedDocument(text: address.text, sealed: sealed)
        let now = time.now()
        guard try await documents.put(document.bytes, as: Self.key(serial), at: now) != nil else { throw Refusal.noApp(app) }
        return (address.text, secret.text, now)
    }

    package func address(of app: AppID) async throws -> (address: String, setAt: Timestamp) {
        guard let hook = try await hook(of: try await apps.existing(app)) else { throw Self.none }
        return (hook.address?.text ?? "", hook.setAt)
    }

    package func remove(of app: AppID) async throws {
        let serial = try await apps.existing(app)
        guard try await documents.remove(Self.key(serial)) else { throw Self.none }
        forget(serial)
    }

    /// Removes the state of an app that was deleted or that no longer has an approval hook.
    package func forget(_ app: AppSerial) { questions.withLock { $0[app] = nil } }

    private static let none = Refusal(.approvalHookUnknown, "The app has no approval hook.")

    // MARK: Asking

    package func hasHook(_ app: AppSerial) async throws -> Bool { try await hook(of: app) != nil }

    package func ask(_ question: ApprovalQuestion, of app: AppID, serial known: AppSerial?) async throws {
        var serial = known
        // A device that registers knows only the name of its app. The list contains the apps that have a hook, and is read once
        // for each version.
        if serial == nil { serial = try await documents.apps(with: .approvalHook)[app] }
        guard let serial, let hook = try await hook(of: serial) else { return }
        let called = CalledApp(app: app, serial: serial)
        try begin(called, question.device)
        defer { end(called, question.device) }
        guard let secret = hook.secret, let address = hook.address else {
            throw cannotCall(
                "its secret or its address cannot be read; set the approval hook again", called)
        }
        let (id, now) = ("msg_" + Base64URL.encode(random.bytes(16)), time.now())
        let body = question.json(app: app, at: now).bytes
        let answer = await caller.ask(
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
            answered(called)
        case .answered(403, let body, _):
            refused.increment()
            answered(called)
            throw Self.refusal(JSONValue(parsing: body))
        case .answered(let status, _, let wait): throw cannotCall("it answered with status \(status)", called, wait)
        case .failed(let reason): throw cannotCall(reason, called)
        }
    }

    /// An app whose approval hook is called.
    private struct CalledApp {
        var app: AppID
        var serial: AppSerial
    }

    private func begin(_ called: CalledApp, _ device: DeviceID?) throws(Refusal) {
        let isBusy = questions.withLock { questions in
            var present = questions[called.serial, default: Questions()]
            let ofDevice = device.map { present.underWayOfDevices[$0, default: 0] } ?? 0
            guard present.underWay < Self.mostUnderWay, ofDevice < Self.mostUnderWayOfDevice else { return true }
            present.underWay += 1
            if let device { present.underWayOfDevices[device] = ofDevice + 1 }
            questions[called.serial] = present
            return false
        }
        if isBusy { throw cannotCall("too many calls of the approval hook are waiting for an answer", called) }
    }

    private func end(_ called: CalledApp, _ device: DeviceID?) {
        questions.withLock { questions in
            guard var present = questions[called.serial], present.underWay > 0 else { return }
            present.underWay -= 1
            if let device, let ofDevice = present.underWayOfDevices[device] {
                present.underWayOfDevices[device] = ofDevice > 1 ? ofDevice - 1 : nil
            }
            // An app without waiting calls and failures has no entry.
            questions[called.serial] = present.underWay == 0 && !present.isFailing ? nil : present
        }
    }

    private func answered(_ called: CalledApp) {
        let wasFailing = questions.withLock { questions in
            guard questions[called.serial]?.isFailing == true else { return false }
            questions[called.serial]?.isFailing = false
            return true
        }
        if wasFailing { logger.notice("the approval hook of an app answers again", metadata: ["app": "\(called.app)"]) }
    }

    /// The log suppresses equal messages within a minute.
    ///
    /// - Parameter wait: The delay that the approval hook returned.
    private func cannotCall(_ reason: String, _ called: CalledApp, _ wait: Duration? = nil) -> Refusal {
        unavailable.increment()
        questions.withLock { $0[called.serial]?.isFailing = true }
        logger.warning(
            "the approval hook of an app did not answer", metadata: ["app": "\(called.app)", "reason": "\(reason)"])
        return Refusal(
            .approvalHookUnavailable, "The app's approval hook did not answer; retry later.",
            retryAfterSeconds: max(Self.retrySeconds, Int(wait?.components.seconds ?? 0)))
    }

    /// Returns a refusal with the code and the detail of the answer.
    private static func refusal(_ body: JSONValue?) -> Refusal {
        var refusal = Refusal(.approvalRefused, "The app's approval hook refused the request.")
        if case .string(let text)? = body?["detail"], (1...detailBytes).contains(text.utf8.count) { refusal.detail = text }
        switch body?["code"] {
        case .string(let code)? where (1...codeBytes).contains(code.utf8.count): refusal.appCode = code
        case .integer(let number)?: refusal.appCode = String(number)
        default: break
        }
        return refusal
    }
}
