package import CarillonBasics
package import CarillonCore
package import CarillonWire
package import Logging
import Synchronization

/// Finds out whose a device is, by the rules of its app.
package final class AppUsers: Sendable {
    /// The rules of an app as they were read last, and what was fetched for them.
    private struct Opened {
        /// By which they are known.
        var sealed: [UInt8]
        var rules: UserRules
        var ownKeys: UserKeySet?
        var fetches = UserKeyFetches()
        /// Whether the last attempt to fetch failed.
        var isFailing = false
        var fetching: Task<Void, Never>?
    }

    private let store: any UserStore
    private let apps: any AppStore
    private let sealer: SecretSealer
    private let isKeyRingWrapped: Bool
    private let source: UserKeySource
    private let callRules: CallRules
    private let time: TimeSource
    private let ticks: TickSource
    private let logger: Logger
    private let opened = Mutex<[AppSerial: Opened]>([:])

    package init(
        store: any UserStore & AppStore, keys: [TokenKey], isKeyRingWrapped: Bool, source: UserKeySource,
        callRules: CallRules, time: TimeSource, ticks: TickSource, random: RandomSource, logger: Logger
    ) {
        self.store = store
        apps = store
        sealer = SecretSealer(keys: keys, for: .users, random: random)
        self.isKeyRingWrapped = isKeyRingWrapped
        self.source = source
        self.callRules = callRules
        self.time = time
        self.ticks = ticks
        self.logger = logger
    }

    // MARK: Rules

    /// Checks rules and sets them, in place of those before. Devices keep the users that they have.
    package func set(_ body: JSONValue, of app: AppID) async throws -> (rules: UserRules, setAt: Timestamp) {
        let serial = try await serial(of: app)
        let rules = try UserRules(body, audience: app.text)
        _ = try rules.ownKeys()
        switch rules.source {
        case .address(let address):
            do throws(Refusal) {
                try callRules.check(address)
            } catch {
                throw Refusal(.userRulesInvalid, error.detail)
            }
        case .keys: break
        case .secrets:
            guard isKeyRingWrapped else {
                throw Refusal(
                    .keyFileMissing,
                    "Name a key file (--key-file) first: it wraps the server's keys, so that a copy of the database reveals nothing."
                )
            }
        }
        let stored = StoredUserRules(
            app: serial, sealed: try sealer.seal(rules.json.bytes, for: serial.rawValue), setAt: time.now())
        guard try await store.putUserRules(stored) else { throw Self.unknown(app) }
        return (rules, stored.setAt)
    }

    package func rules(of app: AppID) async throws -> (rules: UserRules, setAt: Timestamp) {
        let serial = try await serial(of: app)
        guard let stored = try await store.userRules(of: serial) else { throw Self.none(of: app) }
        return (try open(stored).rules, stored.setAt)
    }

    package func remove(of app: AppID) async throws {
        let serial = try await serial(of: app)
        guard try await store.removeUserRules(of: serial) else { throw Self.none(of: app) }
        opened.withLock { $0[serial] = nil }
    }

    /// The app was deleted.
    package func forget(_ app: AppSerial) { opened.withLock { $0[app] = nil } }

    private func serial(of app: AppID) async throws -> AppSerial {
        guard let known = try await apps.app(app) else { throw Self.unknown(app) }
        return known.serial
    }

    private static func unknown(_ app: AppID) -> Refusal { Refusal(.appUnknown, "There is no app \"\(app)\".") }

    private static func none(of app: AppID) -> Refusal {
        Refusal(.userRulesUnknown, "The app has no rules for users.")
    }

    // MARK: Tokens

    /// Who is meant by a token.
    ///
    /// - Throws: ``Refusal``.
    package func user(saidBy text: String, in app: AppSerial) async throws -> UserID {
        guard let stored = try await store.userRules(of: app) else {
            throw Refusal(
                .usersNotConfigured, "The app has no rules for users; an operator sets them with: carillon apps users set.")
        }
        let known = try open(stored)
        // What is no such token is refused before anybody is asked for keys.
        let token = try UserToken(text, allowed: known.rules.algorithms)
        let keys = if let keys = known.ownKeys { keys } else { try await fetchedKeys(of: stored, known.rules, for: token) }
        return try token.verify(
            with: keys, audience: known.rules.audience, issuer: known.rules.issuer, at: time.now())
    }

    private func open(_ stored: StoredUserRules) throws -> Opened {
        if let known = opened.withLock({ $0[stored.app] }), known.sealed == stored.sealed { return known }
        guard let bytes = sealer.open(stored.sealed, for: stored.app.rawValue), let body = JSONValue(parsing: bytes)
        else {
            throw Refusal(
                .userKeysUnavailable,
                "The app's rules for users were sealed with a key that is gone; an operator must set them again.")
        }
        // The audience is always written.
        let rules = try UserRules(body, audience: "")
        let ownKeys: UserKeySet?
        do throws(Refusal) {
            ownKeys = try rules.ownKeys()
        } catch {
            // Rules of an earlier version can have keys that are refused today.
            throw Refusal(
                .userKeysUnavailable, "\(error.detail) An operator must set the app's rules for users again.")
        }
        let new = Opened(sealed: stored.sealed, rules: rules, ownKeys: ownKeys)
        return opened.withLock { opened in
            if let known = opened[stored.app], known.sealed == stored.sealed { return known }
            opened[stored.app] = new
            return new
        }
    }

    // MARK: Key sets

    private enum Keys {
        case known(UserKeySet, secondsUntilNext: Int)
        case fetching(Task<Void, Never>)
        case unavailable(retryAfterSeconds: Int)
    }

    /// Those at the app's address: fetched when it is time, by one for all who wait.
    private func fetchedKeys(
        of stored: StoredUserRules, _ rules: UserRules, for token: UserToken
    ) async throws -> UserKeySet {
        guard case .address(let address) = rules.source else { return UserKeySet([]) }
        var keys = keys(of: stored, at: address)
        var areOfNow = false
        if case .fetching(let task) = keys {
            await task.value
            areOfNow = true
            keys = self.keys(of: stored, at: address)
        }
        switch keys {
        case .known(let keys, let seconds):
            // It may be a key of the last minutes: whoever comes back when the set was fetched again will know.
            guard areOfNow || token.hasCandidate(in: keys) else {
                throw Refusal(
                    .userTokenInvalid,
                    "The user token is refused: there is no key with its kid. The key set is fetched again later.",
                    retryAfterSeconds: token.hasExpired(at: time.now()) ? nil : seconds)
            }
            return keys
        case .fetching: throw Self.unavailable(retryAfterSeconds: 1)
        case .unavailable(let seconds): throw Self.unavailable(retryAfterSeconds: seconds)
        }
    }

    private func keys(of stored: StoredUserRules, at address: CallAddress) -> Keys {
        let now = ticks.now()
        return opened.withLock { opened in
            guard var entry = opened[stored.app], entry.sealed == stored.sealed else {
                return .unavailable(retryAfterSeconds: 1)
            }
            if let task = entry.fetching { return .fetching(task) }
            switch entry.fetches.step(at: now) {
            case .use(let keys): return .known(keys, secondsUntilNext: entry.fetches.secondsUntilNext(at: now))
            case .unavailable(let seconds): return .unavailable(retryAfterSeconds: seconds)
            case .fetch:
                entry.fetches.began(at: now)
                let task = Task { await self.fetch(for: stored, from: address) }
                entry.fetching = task
                opened[stored.app] = entry
                return .fetching(task)
            }
        }
    }

    private func fetch(for stored: StoredUserRules, from address: CallAddress) async {
        var keys: UserKeySet?
        var reason = ""
        var wait: Duration?
        switch await source.fetch(address) {
        case .failed(let why, let wanted): (reason, wait) = (why, wanted)
        case .found(let bytes):
            do throws(Refusal) {
                keys = try UserKeySet(jwks: bytes)
            } catch {
                reason = error.detail
            }
        }
        if keys == nil {
            logger.warning(
                "the keys of an app's users could not be fetched",
                metadata: ["address": "\(address.peer)", "reason": "\(reason)"])
        }
        let now = ticks.now()
        let hasRecovered = opened.withLock { opened in
            guard var entry = opened[stored.app], entry.sealed == stored.sealed else { return false }
            entry.fetching = nil
            if let keys {
                entry.fetches.succeeded(keys, at: now)
            } else {
                entry.fetches.failed(wait: wait, at: now)
            }
            defer { opened[stored.app] = entry }
            defer { entry.isFailing = keys == nil }
            return keys != nil && entry.isFailing
        }
        if hasRecovered {
            logger.notice("the keys of an app's users are fetched again", metadata: ["address": "\(address.peer)"])
        }
    }

    private static func unavailable(retryAfterSeconds: Int) -> Refusal {
        Refusal(
            .userKeysUnavailable, "The app's key set could not be fetched; it is asked for again later.",
            retryAfterSeconds: retryAfterSeconds)
    }
}
