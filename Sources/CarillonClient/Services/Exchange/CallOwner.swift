/// The user for whom the app made a request.
enum CallOwner: Equatable, Sendable {
    /// The user of the device, as the server reported it.
    case present(ServiceCache.Owner)
    /// The user that the app set and that the server has neither accepted nor rejected yet, as a number of ``UserNumbers``.
    case named(UInt64)
}

/// A request is sent only while the device has the user that it had when the app made the request.
extension ServiceEngine {
    static let userMismatch = ServiceError(.userMismatch, "The device belongs to another user by now, or to none.")

    /// The user for whom the app makes a request now.
    nonisolated var callOwner: CallOwner {
        if let number = runner.session.pendingUserNumber { .named(number) } else { .present(presentOwner) }
    }

    /// Whether the device belongs to this user, or will if the server accepts the user.
    nonisolated func isCurrent(_ owner: CallOwner) -> Bool {
        switch owner {
        case .named(let number):
            let session = runner.session
            return number == session.user.numbers.lastAccepted || number == session.pendingUserNumber
        case .present(let owner):
            let present = presentOwner
            return owner.user == present.user && (owner.device == nil || owner.device == present.device)
        }
    }

    /// Waits until the server has confirmed the user that the device had when the app made the call.
    ///
    /// - Throws: The errors of ``ready(isBounded:)``; and ``ServiceError`` with ``ServiceError/Code/userMismatch`` if the device
    ///   belongs to another user then.
    func ready(for call: ServiceCall) async throws {
        // A new token of the same user does not delay the call.
        let isKnown = runner.session.registration.identity != nil && !isBetweenUsers
        if !isKnown { try await ready(isBounded: true) }
        if let owner = outgoing.underWay[call.id]?.owner, !isCurrent(owner) { throw Self.userMismatch }
    }

    /// Whether the server has not answered yet about another user that the app set, or data of the former user is still stored.
    /// No work begins then.
    var isBetweenUsers: Bool { runner.session.user.isOtherPending || owner != presentOwner }

    /// Ends the requests of former users that are being sent.
    func endUnderWayOfOthers() {
        for call in outgoing.underWay.values where !isCurrent(call.owner) { call.end(with: Self.userMismatch) }
    }
}
