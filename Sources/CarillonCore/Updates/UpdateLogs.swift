import CarillonBasics
import CarillonExpression
package import CarillonWire
import Synchronization

/// The live updates of apps, in memory while they are asked for.
package final class UpdateLogs: Sendable {
    /// The updates of an app that are not paused, with the rules that their audiences were read by.
    package struct Log: Sendable {
        package var app: AppSerial
        package var rules: ParameterRules
        /// Of the rules, and of what was resumed.
        package var version: Int64
        package var live: LiveUpdates
        /// The latest content that expired.
        package var expiredContent: UpdateSerial

        /// Whether a device belongs to the audience of an update; nil where its parameters do not say.
        package func holds(_ entry: LiveUpdates.Entry, for facts: DeviceFacts) -> Bool? {
            switch entry.audience {
            case .everyone: true
            case .unreadable: nil
            case .some(let audience): audience.verdict(for: facts)
            }
        }
    }

    private let store: any UpdateStore
    private let language: AudienceLanguage
    private let logs = KnownValues<AppSerial, Log>(capacity: 500)
    /// How many bytes the known logs' updates have.
    private let weights = Mutex<[AppSerial: Int]>([:])
    private let mostBytes: Int
    /// Of updates that are in no log.
    private let otherAudiences = Mutex(OtherAudiences())

    /// - Parameter mostBytes: Of the updates of all logs that are known; beyond it those of other apps are forgotten.
    package init(store: any UpdateStore, language: AudienceLanguage, mostBytes: Int = 256 << 20) {
        self.store = store
        self.language = language
        self.mostBytes = mostBytes
    }

    package func log(of app: AppSerial) async throws -> Log {
        try await logs.value(of: app) {
            let (rules, version) = try await readRules(of: app)
            var live = LiveUpdates()
            let updates = try await store.liveUpdates(of: app)
            for update in updates { live.insert(update, wanted(update.audience, by: rules)) }
            weigh(app, updates.reduce(0) { $0 + $1.weight })
            return Log(
                app: app, rules: rules, version: version, live: live,
                expiredContent: try await store.lastExpiredContent(of: app))
        }
    }

    /// Of how many apps the updates are known.
    package var knownLogs: Int { weights.withLock { $0.count } }

    private func weigh(_ app: AppSerial, _ bytes: Int) {
        let forgotten = weights.withLock { weights -> [AppSerial] in
            weights[app] = bytes
            guard weights.values.reduce(0, +) > mostBytes else { return [] }
            let others = weights.keys.filter { $0 != app }
            weights = [app: bytes]
            return others
        }
        for other in forgotten { logs.forget(other) }
    }

    private func readRules(of app: AppSerial) async throws -> (ParameterRules, version: Int64) {
        guard let stored = try await store.parameterRules(of: app) else { return (ParameterRules(), 0) }
        guard let document = stored.document, let body = JSONValue(parsing: Array(document.utf8)) else {
            return (ParameterRules(), stored.version)
        }
        return (try ParameterRules(body), stored.version)
    }

    /// An audience that was accepted under other rules may not be readable any more: then no device belongs to it.
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

    /// - Parameter previous: The update before it in the app's log. Where that is not known here yet, as two were published at once, the
    ///   log is read anew: a device is held to the last that it has.
    package func published(_ update: Update, after previous: UpdateSerial) {
        var isBehind = false
        logs.change(update.app) { log in
            isBehind = log.live.last < previous
            if !isBehind { log.live.insert(update, wanted(update.audience, by: log.rules)) }
        }
        if isBehind { logs.forget(update.app) }
        if let bytes = weights.withLock({ $0[update.app] }) { weigh(update.app, bytes + update.weight) }
    }

    package func ended(_ update: UpdateSerial, of app: AppSerial) { remove(update, of: app, isExpired: false) }

    package func expired(_ update: UpdateSerial, of app: AppSerial) { remove(update, of: app, isExpired: true) }

    private func remove(_ serial: UpdateSerial, of app: AppSerial, isExpired: Bool) {
        var bytes = 0
        var isUnknown = false
        logs.change(app) { log in
            guard let update = log.live[serial]?.update else {
                isUnknown = true
                return
            }
            if isExpired, update.kind == .content { log.expiredContent = max(log.expiredContent, serial) }
            log.live.remove(serial)
            bytes = update.weight
        }
        weights.withLock { weights in
            if let before = weights[app] { weights[app] = before - bytes }
        }
        // A paused one is not in the log, and may be content that devices missed.
        if isExpired, isUnknown { forget(app) }
    }

    /// Whether a device belongs to the audience of an update that may have ended.
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

    /// The app was deleted, declares other parameters, or resumed an update.
    package func forget(_ app: AppSerial) {
        logs.forget(app)
        weights.withLock { $0[app] = nil }
    }
}

/// Audiences that were read for one device and are soon asked for by others.
private struct OtherAudiences {
    private var entries: [UpdateSerial: (audience: LiveUpdates.Wanted, rules: ParameterRules)] = [:]
    private var bytes = 0

    /// Nil where it is to be read.
    func audience(of update: UpdateSerial, by rules: ParameterRules) -> LiveUpdates.Wanted? {
        guard let entry = entries[update], entry.rules == rules else { return nil }
        return entry.audience
    }

    mutating func note(_ audience: LiveUpdates.Wanted, of update: Update, by rules: ParameterRules) {
        if entries.count >= Self.most || bytes + update.audienceBytes > Self.mostBytes { (entries, bytes) = ([:], 0) }
        entries[update.serial] = (audience, rules)
        bytes += update.audienceBytes
    }

    private static let most = 200
    private static let mostBytes = 1 << 20
}

extension Update {
    /// About what it takes in memory, in bytes: of an audience mostly the keys of its constants.
    fileprivate var weight: Int { body.count + 32 * audienceBytes }
}
