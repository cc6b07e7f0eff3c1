import CarillonBasics
import CarillonExpression
package import CarillonWire

/// The live updates of apps, in memory while they are asked for.
package final class UpdateLogs: Sendable {
    /// The updates of an app, with the rules that their audiences were read by.
    package struct Log: Sendable {
        package var app: AppSerial
        package var rules: ParameterRules
        /// Of the rules; 0 where there are none.
        package var version: Int64
        package var live: LiveUpdates
        /// The latest content that expired.
        package var expiredContent: UpdateSerial

        /// Whether a device belongs to the audience of an update; nil where its parameters do not say.
        package func holds(_ entry: LiveUpdates.Entry, for facts: DeviceFacts) -> Bool? {
            switch entry.audience {
            case .everyone: true
            case .unreadable: nil
            case .some(let audience): try? audience.holds(for: facts)
            }
        }
    }

    private let store: any UpdateStore
    private let language: AudienceLanguage
    private let logs = KnownValues<AppSerial, Log>(capacity: 500)

    package init(store: any UpdateStore, language: AudienceLanguage) {
        self.store = store
        self.language = language
    }

    package func log(of app: AppSerial) async throws -> Log {
        try await logs.value(of: app) {
            let (rules, version) = try await readRules(of: app)
            var live = LiveUpdates()
            for update in try await store.liveUpdates(of: app) { live.insert(update, wanted(update.audience, by: rules)) }
            return Log(
                app: app, rules: rules, version: version, live: live,
                expiredContent: try await store.lastExpiredContent(of: app))
        }
    }

    private func readRules(of app: AppSerial) async throws -> (ParameterRules, version: Int64) {
        guard let stored = try await store.parameterRules(of: app),
            let body = JSONValue(parsing: Array(stored.document.utf8))
        else { return (ParameterRules(), 0) }
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

    package func published(_ update: Update) {
        logs.change(update.app) { log in log.live.insert(update, wanted(update.audience, by: log.rules)) }
    }

    package func ended(_ update: UpdateSerial, of app: AppSerial) { logs.change(app) { $0.live.remove(update) } }

    package func expired(_ update: UpdateSerial, of app: AppSerial) {
        logs.change(app) { log in
            if log.live[update]?.update.kind == .content { log.expiredContent = max(log.expiredContent, update) }
            log.live.remove(update)
        }
    }

    /// Whether a device belongs to the audience of an update that may have ended.
    package func holds(_ update: Update, for facts: DeviceFacts, by rules: ParameterRules) -> Bool {
        switch wanted(update.audience, by: rules) {
        case .everyone: true
        case .unreadable: false
        case .some(let audience): (try? audience.holds(for: facts)) ?? false
        }
    }

    /// The app was deleted, or declares other parameters.
    package func forget(_ app: AppSerial) { logs.forget(app) }
}
