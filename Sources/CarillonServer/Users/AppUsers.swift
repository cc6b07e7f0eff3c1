package import CarillonBasics
package import CarillonCore
package import CarillonWire
package import Logging
import Synchronization

/// Determines the user of a device by the rules of its app.
package final class AppUsers: Sendable {
    /// The rules of an app.
    private struct Opened: Sendable {
        var app: AppSerial
        var version: RegistryVersion
        var setAt: Timestamp
        var rules: UserRules
        var ownKeys: UserKeySet?
    }

    /// The fetched keys of an app.
    private struct Fetched {
        /// The version of the rules.
        var version: RegistryVersion
        var fetches = UserKeyFetches()
        /// Whether the last attempt to fetch failed.
        var isFailing = false
        var fetching: Task<Void, Never>?
    }

    private let documents: AppDocuments
    private let apps: any AppStore
    private let sealer: SecretSealer
    private let isKeyRingWrapped: Bool
    private let fetcher: UserKeyFetcher
    private let callRules: CallRules
    private let time: TimeSource
    private let ticks: TickSource
    private let logger: Logger
    private let fetched = Mutex<[AppSerial: Fetched]>([:])

    package init(
        apps: any AppStore, documents: AppDocuments, keys: [TokenKey], isKeyRingWrapped: Bool, fetcher: UserKeyFetcher,
        callRules: CallRules, time: TimeSource, ticks: TickSource, random: RandomSource, logger: Logger
    ) {
        self.apps = apps
        self.documents = documents
        sealer = SecretSealer(keys: keys, for: .users, random: random)
        self.isKeyRingWrapped = isKeyRingWrapped
        self.fetcher = fetcher
        self.callRules = callRules
        self.time = time
        self.ticks = ticks
        self.logger = logger
    }

    // MARK: Rules

    /// Checks rules and stores them in place of the earlier ones. Devices keep their users.
    package func set(_ body: JSONValue, of app: AppID) async throws -> (rules: UserRules, setAt: Timestamp) {
        let serial = try await apps.existing(app)
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
                    "The server has no wrapping key file. Start it with --key-file first: the file's key encrypts the server's keys, so that a copy of the database reveals nothing."
                )
            }
        }
        let sealed = try sealer.seal(rules.json.bytes, for: serial.rawValue)
        let now = time.now()
        guard try await documents.put(sealed, as: Self.key(serial), at: now) != nil else { throw Refusal.noApp(app) }
        return (rules, now)
    }

    package func rules(of app: AppID) async throws -> (rules: UserRules, setAt: Timestamp) {
        let serial = try await apps.existing(app)
        guard let opened = try await opened(serial) else { throw Self.none(of: app) }
        return (opened.rules, opened.setAt)
    }

    package func remove(of app: AppID) async throws {
        let serial = try await apps.existing(app)
        guard try await documents.remove(Self.key(serial)) else { throw Self.none(of: app) }
        forget(serial)
    }

    /// Removes the cached keys of an app that was deleted or no longer has rules.
    package func forget(_ app: AppSerial) { fetched.withLock { $0[app] = nil } }

    private static func key(_ app: AppSerial) -> AppDocument.Key { AppDocument.Key(.userRules, of: app) }

    private static func none(of app: AppID) -> Refusal {
        Refusal(.userRulesUnknown, "The app has no user rules.")
    }

    // MARK: Tokens

    /// Returns the user that a token names.
    ///
    /// - Throws: ``Refusal``.
    package func user(assertedBy text: String, in app: AppSerial) async throws -> UserID {
        guard let known = try await opened(app) else {
            throw Refusal(
                .usersNotConfigured, "The app has no user rules; an operator sets them with `carillon apps users set`.")
        }
        // An invalid token is refused before keys are fetched.
        let token = try UserToken(text, allowed: known.rules.algorithms)
        let keys = if let keys = known.ownKeys { keys } else { try await fetchedKeys(of: known, for: token) }
        return try token.verify(
            with: keys, audience: known.rules.audience, issuer: known.rules.issuer, at: time.now())
    }

    private func opened(_ app: AppSerial) async throws -> Opened? {
        try await documents.value(of: Self.key(app)) { document -> Opened? in try document.map { try open($0) } }
    }

    private func open(_ document: AppDocument) throws -> Opened {
        let app = document.key.app
        guard let bytes = sealer.open(document.bytes, for: app.rawValue), let body = JSONValue(parsing: bytes) else {
            throw Refusal(
                .userKeysUnavailable,
                "The app's user rules were encrypted with a key that the server no longer has; an operator must set them again."
            )
        }
        // The stored rules always contain the audience.
        let rules = try UserRules(body, audience: "")
        let ownKeys: UserKeySet?
        do throws(Refusal) {
            ownKeys = try rules.ownKeys()
        } catch {
            // Rules of an earlier version can contain keys that are no longer valid.
            throw Refusal(
                .userKeysUnavailable, "\(error.detail) An operator must set the app's user rules again.")
        }
        return Opened(
            app: app, version: document.version, setAt: document.setAt, rules: rules, ownKeys: ownKeys)
    }

    // MARK: Key sets

    private enum Keys {
        case known(UserKeySet, secondsUntilNext: Int)
        case fetching(Task<Void, Never>)
        case unavailable(retryAfterSeconds: Int)
    }

    /// Returns the keys at the app's address. They are fetched if necessary, once for all waiting requests.
    private func fetchedKeys(of known: Opened, for token: UserToken) async throws -> UserKeySet {
        guard case .address(let address) = known.rules.source else { return UserKeySet([]) }
        var keys = keys(of: known, at: address)
        var areOfNow = false
        if case .fetching(let task) = keys {
            await task.value
            areOfNow = true
            keys = self.keys(of: known, at: address)
        }
        switch keys {
        case .known(let keys, let seconds):
            // The key can be new. A client that retries after the next fetch succeeds if the key exists then.
            guard areOfNow || token.hasCandidate(in: keys) else {
                throw Refusal(
                    .userTokenInvalid,
                    "The user token is not valid: there is no key with its \"kid\". The server fetches the key set again later; retry then.",
                    retryAfterSeconds: token.hasExpired(at: time.now()) ? nil : seconds)
            }
            return keys
        case .fetching: throw Self.unavailable(retryAfterSeconds: 1)
        case .unavailable(let seconds): throw Self.unavailable(retryAfterSeconds: seconds)
        }
    }

    private func keys(of known: Opened, at address: CallAddress) -> Keys {
        let now = ticks.now()
        return fetched.withLock { fetched in
            var entry = fetched[known.app] ?? Fetched(version: known.version)
            // The app has set other rules.
            guard entry.version <= known.version else { return .unavailable(retryAfterSeconds: 1) }
            if entry.version < known.version { entry = Fetched(version: known.version) }
            if let task = entry.fetching { return .fetching(task) }
            switch entry.fetches.step(at: now) {
            case .use(let keys): return .known(keys, secondsUntilNext: entry.fetches.secondsUntilNext(at: now))
            case .unavailable(let seconds): return .unavailable(retryAfterSeconds: seconds)
            case .fetch:
                entry.fetches.began(at: now)
                let task = Task { await self.fetch(for: known, from: address) }
                entry.fetching = task
                fetched[known.app] = entry
                return .fetching(task)
            }
        }
    }

    private func fetch(for known: Opened, from address: CallAddress) async {
        var keys: UserKeySet?
        var reason = ""
        var wait: Duration?
        switch await fetcher.fetch(address) {
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
                "cannot fetch the key set of an app's users; retrying later",
                metadata: ["address": "\(address.peer)", "reason": "\(reason)"])
        }
        let now = ticks.now()
        let hasRecovered = fetched.withLock { fetched in
            guard var entry = fetched[known.app], entry.version == known.version else { return false }
            entry.fetching = nil
            if let keys {
                entry.fetches.succeeded(keys, at: now)
            } else {
                entry.fetches.failed(wait: wait, at: now)
            }
            defer { fetched[known.app] = entry }
            defer { entry.isFailing = keys == nil }
            return keys != nil && entry.isFailing
        }
        if hasRecovered {
            logger.notice("fetched the key set of an app's users again", metadata: ["address": "\(address.peer)"])
        }
    }

    private static func unavailable(retryAfterSeconds: Int) -> Refusal {
        Refusal(
            .userKeysUnavailable, "The server cannot fetch the app's key set and retries later; retry then.",
            retryAfterSeconds: retryAfterSeconds)
    }
}
