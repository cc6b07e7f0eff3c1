import CarillonBasics
import CarillonWire

/// What the app said of its user.
enum UserChange: Equatable, Sendable {
    /// With a token that the app's own server signed: never logged.
    case signedIn(String)
    case signedOut

    /// Nil of nobody.
    var token: String? {
        if case .signedIn(let token) = self { token } else { nil }
    }

    /// Whether the word may name another user than this one. A token that cannot be read may.
    func mayDiffer(from user: String?) -> Bool {
        guard let token else { return user != nil }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let claims = Base64URL.decode(String(parts[1])),
            case .string(let name)? = JSONValue(parsing: claims)?["sub"]
        else { return true }
        return name != user
    }
}

/// Numbers what the app says of its user, so that it is known for which user the app made a request.
struct UserNumbers: Equatable, Sendable {
    /// The number of what the app said last. What an earlier run left has the number 1.
    private(set) var lastSet: UInt64
    /// The number of what the server took last.
    private(set) var lastAccepted: UInt64 = 0

    /// - Parameter isPending: Whether an earlier run left what the server did not take.
    init(isPending: Bool) { lastSet = isPending ? 1 : 0 }

    mutating func set() { lastSet += 1 }
    mutating func accept() { lastAccepted = lastSet }
}

/// What is said to the server of the user, by HTTP beside the socket. It is kept until the server took or refused it, and no channel
/// is opened before: whose the channel is, is whose the device is then.
extension ClientSession {
    mutating func userSet(_ userChange: UserChange, at now: ContinuousClock.Instant) -> [SessionAction] {
        user.pending = userChange
        user.numbers.set()
        user.reporting.changed()
        return [.write(.saveUser(userChange)), .notifySubscriptions(.paused)] + reportUser(at: now)
    }

    /// Says what is to be said, unless it is under way or waits.
    mutating func reportUser(at now: ContinuousClock.Instant) -> [SessionAction] {
        guard phase == .live, let identity = registration.identity, let userChange = user.pending,
            user.reporting.isReady(at: now)
        else { return [] }
        user.reporting.began()
        return [.reportUser(userChange, identity)]
    }

    /// The server took a word.
    ///
    /// - Parameters:
    ///   - of: Whose word it was: the install may be another device since.
    ///   - name: Whose the device is.
    mutating func userAccepted(
        _ userChange: UserChange, of identity: DeviceIdentity, as name: String?, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        user.reporting.ended()
        guard identity.device == registration.identity?.device else { return reportUser(at: now) }
        let isOther = user.accepted != nil && user.accepted != name
        user.accepted = name
        var actions: [SessionAction] = [.write(.saveAcceptedUser(name))]
        if isOther { actions += dropMessagesOfEnded() + [.notifySubscriptions(.userChanged)] + reopenForUser() }
        // Another word is said after this one.
        guard user.pending == userChange else { return actions + reportUser(at: now) }
        user.reporting.succeeded()
        user.pending = nil
        user.numbers.accept()
        actions += [.write(.saveUser(nil)), .notifyDevice([.userTaken])]
        return actions + (phase == .live ? registrations() : []) + resumeSubscriptions()
    }

    /// Replaces the connection: envelopes of the former user can be on their way on it. The server sends the present ones on the next one.
    private mutating func reopenForUser() -> [SessionAction] {
        switch phase {
        case .live, .identifying:
            let actions = close(.normal)
            connection.goodbyeDelay = .zero
            return actions
        case .stopped, .resting, .deregistering, .registering, .locating, .renewing, .opening, .closing, .waiting: return []
        }
    }

    /// The server will not take a word. Channels that were to be opened for that user are opened for nobody else.
    mutating func userRefused(
        _ userChange: UserChange, of identity: DeviceIdentity, _ error: PushError, at now: ContinuousClock.Instant
    ) -> [SessionAction] {
        user.reporting.ended()
        guard identity.device == registration.identity?.device, user.pending == userChange else {
            return reportUser(at: now)
        }
        user.reporting.succeeded()
        user.pending = nil
        return [.write(.saveUser(nil)), .notifyDevice([.userRefused(error)])]
            + endChannels { $0.registrationFailed(code: ChannelErrorCode.registrationRefused) } + resumeSubscriptions()
    }

    mutating func userReportFailed(
        retryAfter: Duration?, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        user.reporting.failed(retryAfter: retryAfter, at: now, random: random)
        return []
    }
}
