import CarillonBasics
package import CarillonWire
import Crypto

/// The audience updates of apps, for the requests of publishers and operators.
package struct AppUpdates: Sendable {
    private let store: any UpdateStore
    private let documents: AppDocuments
    private let logs: UpdateLogs
    private let delivery: UpdateDelivery
    private let limits: UpdateLimits
    private let previews: RequestLimiter
    private let listings: RequestLimiter
    private let time: TimeSource
    private let ticks: TickSource
    private let random: RandomSource

    package init(
        store: any UpdateStore, documents: AppDocuments, logs: UpdateLogs, delivery: UpdateDelivery, limits: UpdateLimits,
        previews: RequestLimiter, listings: RequestLimiter, time: TimeSource, ticks: TickSource, random: RandomSource
    ) {
        self.store = store
        self.documents = documents
        self.logs = logs
        self.delivery = delivery
        self.limits = limits
        self.previews = previews
        self.listings = listings
        self.time = time
        self.ticks = ticks
        self.random = random
    }

    // MARK: Parameters

    package func rules(of app: AppSerial) async throws -> ParameterRules { try await logs.log(of: app).rules }

    /// Declares the parameters of an app. While the audience of a live update cannot be evaluated with the present declaration,
    /// no device matches the update.
    package func setRules(_ rules: ParameterRules, of app: AppSerial) async throws {
        let key = AppDocument.Key(.parameterRules, of: app)
        guard try await documents.put(rules.json.bytes, as: key, at: time.now()) != nil else {
            throw Refusal(.appUnknown, "The app was deleted.")
        }
    }

    // MARK: Publishing

    /// Publishes an update. Returns when the update is stored durably. Connected devices receive it shortly afterwards.
    ///
    /// - Parameter idempotencyKey: If an earlier request had the same key, the call returns the update of that request.
    package func publish(
        _ definition: Update.Definition, of app: AppSerial, by key: KeyID, idempotencyKey: String? = nil
    ) async throws -> (update: Update, isNew: Bool) {
        var read: UpdateLogs.ReadAudience?
        if let source = definition.audience {
            let rules = try await rules(of: app)
            read = .init(audience: try logs.audience(source, by: rules), rules: rules)
        }
        var random = random
        let id = UpdateID.random(using: &random)
        let now = time.now()
        let request = UpdateRequest(
            proposed: id, app: app, key: key, definition: definition, body: definition.body(id, at: now),
            isIndexed: read == nil || read?.audience.lookup != nil,
            idempotency: idempotencyKey.map { (Self.hash($0), Self.hash(definition.fingerprint)) }, limits: limits)
        switch try await store.publishUpdate(request, at: now) {
        case .made(let update, let superseded, let previous):
            if let superseded {
                logs.ended(superseded, of: app)
                delivery.ended(superseded, of: app)
            }
            logs.published(update, read, after: previous)
            delivery.published(update)
            return (update, true)
        case .repeated(let update): return (update, false)
        case .refused(let reason): throw refusal(because: reason)
        }
    }

    private func refusal(because reason: PublishRules.Refusal) -> Refusal {
        switch reason {
        case .keyReused:
            Refusal(.idempotencyKeyReused, "The \"Idempotency-Key\" was used for another update; use a new key.")
        case .tooMany:
            Refusal(.updatesTooMany, "An app can have up to \(limits.live) live updates; withdraw some first.")
        case .tooManyUnindexed:
            Refusal(
                .updatesTooMany,
                "An app can have up to \(limits.unindexed) live updates whose audience no index can find. Compare a parameter with a value (==, in) in the audience, or withdraw some updates first."
            )
        case .tooManyAudienceBytes: tooManyAudienceBytes
        case .supersededUnknown:
            Refusal(.updateUnknown, "\"supersedes\" must be the ID of a live update of the app.")
        case .appGone: Refusal(.appUnknown, "The app was deleted.")
        }
    }

    private var tooManyAudienceBytes: Refusal {
        Refusal(
            .updatesTooMany,
            "The audiences of an app's live updates must have at most \(limits.audienceBytes) bytes together; withdraw some updates first."
        )
    }

    private static func hash(_ text: String) -> [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }

    /// Evaluates the audience of an update for the devices of an app, with their last reported parameters. Nothing is sent.
    package func report(
        _ definition: Update.Definition, of app: AppSerial, _ appID: AppID
    ) async throws -> AudienceReport {
        try await report(audience: definition.audience, of: app, appID)
    }

    /// - Throws: ``ErrorCode/rateLimited`` if other previews take too long.
    package func report(audience source: String?, of app: AppSerial, _ appID: AppID) async throws -> AudienceReport {
        try await previews.take(of: app) { try await evaluate(source, of: app, appID) }
    }

    private func evaluate(_ source: String?, of app: AppSerial, _ appID: AppID) async throws -> AudienceReport {
        let rules = try await rules(of: app)
        let audience = try source.map { source throws(Refusal) in try logs.audience(source, by: rules) }
        let began = ticks.now()
        var report = AudienceReport()
        var last = BindingSerial(0)
        while true {
            let page = try await store.bindings(of: app, after: last, limit: Self.pageSize)
            for (place, entry) in page.enumerated() {
                if place.isMultiple(of: Self.devicesInARow) { await Task.yield() }
                let facts = logs.facts(entry.binding.counting(at: time.now()), of: entry.device, appID, by: rules)
                report.note(audience.verdict(for: facts, source: source))
            }
            guard page.count == Self.pageSize, let end = page.last else { return report }
            last = end.binding.serial
            if ticks.now() - began > Self.validationNanoseconds {
                report.all = try await store.bindingCount(of: app)
                return report
            }
        }
    }

    /// Evaluates an audience for one device; nil if the device never polled.
    package func report(audience source: String?, for device: Device) async throws -> DeviceReport? {
        let rules = try await rules(of: device.app)
        let audience = try source.map { source throws(Refusal) in try logs.audience(source, by: rules) }
        guard let binding = try await store.presentBinding(of: device.serial)?.counting(at: time.now()) else { return nil }
        let facts = logs.facts(binding, of: device.id, device.appID, by: rules)
        return DeviceReport(
            profile: binding.profile, verdict: audience.verdict(for: facts, source: source),
            reportedParameters: binding.values.values.keys.sorted())
    }

    private static let pageSize = 1000
    /// The number of devices after which a preview lets other work run.
    private static let devicesInARow = 100
    private static let validationNanoseconds: Int64 = 1_500_000_000

    // MARK: Reading

    package func update(_ id: UpdateID, of app: AppSerial) async throws -> Update {
        guard let update = try await store.update(id, of: app) else {
            throw Refusal(.updateUnknown, "The app has no update with this ID.")
        }
        return update
    }

    package func list(
        of app: AppSerial, _ filter: UpdateFilter = .all, before: UpdateSerial?, limit: Int
    ) async throws -> [Update] {
        try await listings.take(of: app) { try await store.updates(of: app, filter, before: before, limit: limit) }
    }

    package func counts(of update: Update) async throws -> [CompletionMachine.State: Int] {
        try await listings.take(of: update.app) { try await store.counts(of: update.serial) }
    }

    package func completions(
        of update: Update, in state: CompletionMachine.State?, after: CompletionKey?, limit: Int
    ) async throws -> [DeviceCompletion] {
        try await listings.take(of: update.app) {
            try await store.completions(of: update.serial, in: state, after: after, limit: limit)
        }
    }

    // MARK: Changing

    /// Withdraws an update. When this returns, no session of any home receives the update any more, and no inbox that is read afterwards
    /// contains it. A poll that read its part of the inbox before can still return it.
    ///
    /// - Throws: ``StoreFault`` also if another home did not answer. The update ended then, and a session of that home may still receive it.
    ///   The next call is refused with ``ErrorCode/updateFinal`` when each home has answered.
    package func withdraw(_ id: UpdateID, of app: AppSerial, by key: KeyID) async throws {
        let update = try await update(id, of: app)
        guard !update.isResync else {
            throw Refusal(
                .updateFinal, "The update makes devices that missed content fetch everything; it cannot be withdrawn.")
        }
        guard try await store.withdrawUpdate(update, by: key, at: time.now()) else {
            let status = try await self.update(id, of: app).status
            if status == .withdrawn { try await delivery.withdrawElsewhere(update) }
            throw Refusal(.updateFinal, "The update is already \(status.name).")
        }
        try await delivery.withdrew(update)
    }

    /// Ends the pause of an update: the server delivers it to its audience from now on. An update that is not paused stays
    /// unchanged.
    package func resume(_ id: UpdateID, of app: AppSerial, by key: KeyID) async throws -> Update {
        var update = try await update(id, of: app)
        if update.status == .live, update.isPaused {
            switch try await store.resumeUpdate(update, by: key, audienceBytes: limits.audienceBytes, at: time.now()) {
            case .resumed:
                logs.forget(app)
                update.isPaused = false
                delivery.published(update)
                return update
            case .notPaused: update = try await self.update(id, of: app)
            case .tooManyAudienceBytes: throw tooManyAudienceBytes
            }
        }
        guard update.status == .live else {
            throw Refusal(.updateFinal, "The update is \(update.status.name) and cannot be resumed.")
        }
        return update
    }

    /// Requeues the parked completions of an update, at all devices or at one device.
    ///
    /// - Returns: The number of requeued completions.
    package func requeue(_ id: UpdateID, of app: AppSerial, device: DeviceID?, by key: KeyID) async throws -> Int {
        let update = try await update(id, of: app)
        guard update.status == .live else {
            throw Refusal(.updateFinal, "The update is \(update.status.name) and cannot be delivered again.")
        }
        func requeue(_ completions: [Completion]) async throws -> Int {
            try await store.requeue(
                completions.map(\.key), at: time.now(), noting: (key: key, update: id), of: app)
        }
        if let device { return try await requeue(try await store.completions(of: update.serial, at: device)) }
        var count = 0
        var last: CompletionKey?
        while true {
            let after = last
            let page = try await listings.take(of: app) {
                try await store.completions(of: update.serial, in: .parked, after: after, limit: Self.pageSize)
            }
            if last == nil || !page.isEmpty { count += try await requeue(page.map(\.completion)) }
            guard page.count == Self.pageSize, let end = page.last else { break }
            last = end.completion.key
        }
        return count
    }

    /// Returns the actions on the app's updates, from the latest on.
    package func audit(of app: AppSerial, before number: Int64?, limit: Int) async throws -> [AuditEntry] {
        try await listings.take(of: app) { try await store.audit(of: app, before: number, limit: limit) }
    }
}

extension Update.Definition {
    static let resync = Update.Definition(
        kind: .content, payload: Array(#"{"action":"resync"}"#.utf8), audience: nil, mode: .standing,
        ttlSeconds: UpdateLimits.ttlSeconds.upperBound, orderKey: nil, supersedes: nil)

    /// Returns the content that devices receive.
    func body(_ id: UpdateID, at now: Timestamp) -> [UInt8] {
        JSONWriter.object(capacity: 256 + payload.count) { json in
            json.member("id", id.description)
            json.member("kind", kind.name)
            json.member("payload", text: payload)
            json.member("publishedAt", Timestamp3339.text(now.milliseconds))
            json.member("ttl", ttlSeconds)
            json.member("orderKey", orderKey)
            json.member("supersedes", supersedes?.description)
        }
    }

    /// A text of all members of a request. Two requests with the same text publish the same update.
    fileprivate var fingerprint: String {
        let parts: [String?] = [
            kind.name, String(decoding: payload, as: UTF8.self), audience, mode.rawValue, String(ttlSeconds), orderKey,
            supersedes?.description, wakes ? "wakes" : nil,
        ]
        return parts.map { $0.map { "\($0.utf8.count):\($0)" } ?? "-" }.joined(separator: ",")
    }
}

extension UpdateBinding {
    /// Returns the binding without a location that is older than a day, because audiences ignore such a location.
    func counting(at now: Timestamp) -> UpdateBinding {
        guard let locatedAt, locatedAt.adding(seconds: Self.locationSeconds) <= now else { return self }
        var binding = self
        binding.values = values.withoutLocations
        return binding
    }
}
