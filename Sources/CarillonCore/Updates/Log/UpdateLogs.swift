import CarillonExpression
package import CarillonWire
import Synchronization

/// Caches the live updates of apps in memory.
package final class UpdateLogs: Sendable {
    /// The updates of an app that are not paused, with the rules by which their audiences were parsed.
    package struct Log: Sendable {
        package var app: AppSerial
        package var rules: ParameterRules
        /// The version of the rules' document.
        var rulesVersion: Int64
        /// Increases when the app sets other rules, and when an update is paused or resumed.
        package var version: Int64
        package var live: LiveUpdates
        /// The latest content that expired.
        package var expiredContent: UpdateSerial
        /// The mark of the log in the store, from before the updates were read.
        var mark = UpdateLogMark.ofNoApp
        /// The number of the reading of the log.
        var reading = 0

        /// Whether a device belongs to the audience of an update; nil if the device lacks a parameter that the audience needs, or
        /// if the evaluation fails.
        package func holds(_ entry: LiveUpdates.Entry, for facts: DeviceFacts) -> Bool? {
            switch entry.audience {
            case .everyone: true
            case .unreadable: nil
            case .some(let audience): audience.verdict(for: facts)
            }
        }
    }

    /// Whether other homes change updates. Each use of a cached log then compares its mark with the mark in the store.
    let isShared: Bool
    private let store: any UpdateStore
    private let documents: AppDocuments
    private let language: AudienceLanguage
    private let logs: ReadThroughCache<AppSerial, Log>
    /// Logs that are being read, each by one task.
    private let loads = Mutex<[AppSerial: Task<Log, any Error>]>([:])
    /// The approximate memory of the cached logs, in bytes; of one log at most `mostBytesOfApp`.
    private let weights = Mutex<[AppSerial: Int]>([:])
    private let mostBytes: Int
    /// The limit for one log, so that an app at its limits leaves memory for the logs of others.
    private var mostBytesOfApp: Int { mostBytes / 4 }
    /// Audiences of updates that are not in a log.
    private let otherAudiences = Mutex(OtherAudiences())

    /// - Parameters:
    ///   - mostBytes: The memory of all cached logs. Beyond it the largest logs of other apps are removed.
    ///   - capacity: The number of logs that the cache keeps at least, if their memory allows it.
    ///   - isShared: Whether other homes change updates.
    package init(
        store: any UpdateStore, documents: AppDocuments, language: AudienceLanguage, mostBytes: Int = 256 << 20,
        capacity: Int = 500, isShared: Bool = false
    ) {
        self.isShared = isShared
        logs = ReadThroughCache(capacity: capacity)
        self.store = store
        self.documents = documents
        self.language = language
        self.mostBytes = mostBytes
    }

    /// The number of times that a log was read from the store.
    package var reads: Int { readCount.load(ordering: .sequentiallyConsistent) }
    private let readCount = Atomic(0)

    /// Returns the log with all changes that were stored before the call.
    package func log(of app: AppSerial) async throws -> Log {
        let readsBefore = reads
        while true {
            // The version is read again in each pass: when the app is deleted, its rules are removed.
            let version = try await documents.parameterRules(of: app).version
            let mark = try await presentMark(of: app)
            func isCurrent(_ log: Log) -> Bool {
                guard log.rulesVersion >= version else { return false }
                // A log that was read after the call began has another mark if the log changed in the meantime.
                return mark.map { log.mark == $0 || log.reading > readsBefore } ?? true
            }
            if let known = logs.known(app), isCurrent(known) { return known }
            // Another caller can have begun to read the log with the present rules. Its result stays valid.
            logs.forget(app) { !isCurrent($0) }
            let log = try await load(app)
            // The read can have begun before the app set its rules.
            if isCurrent(log) { return log }
            try Task.checkCancellation()
        }
    }

    /// Returns nil if no other home changes updates, so that a cached log contains all changes.
    private func presentMark(of app: AppSerial) async throws -> UpdateLogMark? {
        guard isShared else { return nil }
        return try await store.logMark(of: app) ?? .ofNoApp
    }

    private func load(_ app: AppSerial) async throws -> Log {
        let task = loads.withLock { loads in
            if let task = loads[app] { return task }
            // The task ends when the log is read. Other callers also wait for the task.
            let task = Task { try await self.read(app) }
            loads[app] = task
            return task
        }
        defer { loads.withLock { if $0[app] == task { $0[app] = nil } } }
        return try await task.value
    }

    /// Makes later callers start a new read, because the present read may have begun before the change.
    private func leaveLoad(of app: AppSerial) { loads.withLock { $0[app] = nil } }

    private func read(_ app: AppSerial) async throws -> Log {
        try await logs.value(of: app) {
            let reading = readCount.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
            let (rules, version) = try await documents.parameterRules(of: app)
            let mark = try await store.logMark(of: app) ?? .ofNoApp
            var live = LiveUpdates()
            let updates = try await store.liveUpdates(of: app)
            for update in updates { live.insert(update, wanted(update.audience, by: rules)) }
            weigh(app, live.weight)
            return Log(
                app: app, rules: rules, rulesVersion: version, version: version + mark.revision, live: live,
                expiredContent: try await store.lastExpiredContent(of: app), mark: mark, reading: reading)
        }
    }

    /// The number of apps whose logs are cached.
    package var knownLogs: Int { weights.withLock { $0.count } }

    private func weigh(_ app: AppSerial, _ bytes: Int) {
        let forgotten = weights.withLock { weights -> [AppSerial] in
            weights[app] = min(bytes, mostBytesOfApp)
            let known = logs.known(among: weights.keys)
            weights = weights.filter { $0.key == app || known.contains($0.key) }
            var excess = weights.values.reduce(0, +) - mostBytes
            var forgotten: [AppSerial] = []
            for (other, weight) in weights.sorted(by: { $0.value > $1.value }) where other != app {
                guard excess > 0 else { break }
                excess -= weight
                weights[other] = nil
                forgotten.append(other)
            }
            return forgotten
        }
        for other in forgotten { logs.forget(other) }
    }

    /// Parses an audience. If an audience that was accepted under other rules cannot be parsed any more, no device belongs to it.
    private func wanted(_ source: String?, by rules: ParameterRules) -> LiveUpdates.Wanted {
        guard let source else { return .everyone }
        return (try? Audience(source, over: rules, in: language)).map { .some($0) } ?? .unreadable
    }

    package func audience(_ source: String, by rules: ParameterRules) throws(Refusal) -> Audience {
        do throws(ExpressionRefusal) {
            return try Audience(source, over: rules, in: language)
        } catch {
            throw Refusal(.audienceInvalid, error.description)
        }
    }

    package func facts(_ binding: UpdateBinding, of device: DeviceID, _ app: AppID, by rules: ParameterRules) -> DeviceFacts
    {
        language.facts(binding.values, device: device, user: binding.user, app: app, by: rules)
    }

    /// An audience, and the rules by which it was parsed.
    package struct ReadAudience: Sendable {
        package var audience: Audience
        package var rules: ParameterRules
    }

    /// Adds a published update to the cached log of its app.
    ///
    /// - Parameters:
    ///   - read: The update's audience. If the app has other rules by now, the log is read again.
    ///   - previous: The update before it in the app's log. If the cached log does not contain that update yet, because two were
    ///     published at the same time, the log is read again: a device's place moves to the last update of the log.
    package func published(_ update: Update, _ read: ReadAudience? = nil, after previous: UpdateSerial) {
        var isBehind = false
        var weight: Int?
        logs.change(update.app) { log in
            let audience: LiveUpdates.Wanted? =
                if update.audience == nil {
                    LiveUpdates.Wanted.everyone
                } else if let read, read.rules == log.rules {
                    LiveUpdates.Wanted.some(read.audience)
                } else {
                    nil
                }
            guard let audience, log.live.last >= previous else {
                isBehind = true
                return
            }
            log.live.insert(update, audience)
            weight = log.live.weight
        }
        leaveLoad(of: update.app)
        if isBehind { forget(update.app) }
        if let weight { weigh(update.app, weight) }
    }

    package func ended(_ update: UpdateSerial, of app: AppSerial) { remove(update, of: app, isExpired: false) }

    package func expired(_ update: UpdateSerial, of app: AppSerial) { remove(update, of: app, isExpired: true) }

    private func remove(_ serial: UpdateSerial, of app: AppSerial, isExpired: Bool) {
        var weight: Int?
        var isUnknown = false
        logs.change(app) { log in
            guard let update = log.live[serial]?.update else {
                isUnknown = true
                return
            }
            if isExpired, update.kind == .content { log.expiredContent = max(log.expiredContent, serial) }
            log.live.remove(serial)
            weight = log.live.weight
        }
        leaveLoad(of: app)
        if let weight { weigh(app, weight) }
        // A paused update is not in the log, and may be content that devices missed.
        if isExpired, isUnknown { forget(app) }
    }

    /// Whether a device belongs to the audience of an update, which may have ended.
    package func holds(_ update: Update, for facts: DeviceFacts, by rules: ParameterRules) -> Bool {
        let known = otherAudiences.withLock { $0.audience(of: update.serial, by: rules) }
        let audience = known ?? wanted(update.audience, by: rules)
        if known == nil { otherAudiences.withLock { $0.note(audience, of: update, by: rules) } }
        return switch audience {
        case .everyone: true
        case .unreadable: false
        case .some(let audience): audience.verdict(for: facts) ?? false
        }
    }

    /// Removes the log of an app from memory when the app resumes an update, or when the log in memory may be incomplete.
    package func forget(_ app: AppSerial) {
        logs.forget(app)
        leaveLoad(of: app)
        weights.withLock { $0[app] = nil }
    }
}

/// Caches audiences of updates that are not in a log, for evaluation with further devices.
struct OtherAudiences {
    private var entries: [UpdateSerial: (audience: LiveUpdates.Wanted, rules: ParameterRules, bytes: Int)] = [:]
    /// The updates, from the oldest cached on.
    private var order: [UpdateSerial] = []
    private(set) var bytes = 0

    /// Returns nil if the audience must be parsed.
    func audience(of update: UpdateSerial, by rules: ParameterRules) -> LiveUpdates.Wanted? {
        guard let entry = entries[update], entry.rules == rules else { return nil }
        return entry.audience
    }

    mutating func note(_ audience: LiveUpdates.Wanted, of update: Update, by rules: ParameterRules) {
        remove(update.serial)
        while let oldest = order.first, order.count >= Self.most || bytes + update.audienceBytes > Self.mostBytes {
            remove(oldest)
        }
        entries[update.serial] = (audience, rules, update.audienceBytes)
        order.append(update.serial)
        bytes += update.audienceBytes
    }

    private mutating func remove(_ update: UpdateSerial) {
        guard let entry = entries.removeValue(forKey: update) else { return }
        bytes -= entry.bytes
        order.removeAll { $0 == update }
    }

    var updates: [UpdateSerial] { order }

    static let most = 200
    /// The total size of the sources of the audiences.
    static let mostBytes = 1 << 20
}
