import CarillonWire

// The changes of rows that a decision requires.
extension RegistrationRules {
    /// The number of released tokens, taken on earlier days, that are removed when a token is released.
    package static let forgottenAtOnce = 10

    /// Returns the changes of rows for a decision.
    static func changes(
        of decision: Decision, in app: AppSerial, after stored: DeviceRegistration?, _ token: TokenFacts?,
        isNew: Bool = false
    ) -> RegistrationChanges {
        var changes = RegistrationChanges(in: app)
        if let displaced = decision.displaced {
            changes.profiles.append(
                RegistrationChanges.Profile(
                    registration: displaced, isFirst: false,
                    statusChange: token?.holder.flatMap { StatusChange(from: $0.status, to: displaced.status) }))
        }
        guard decision.isChanged else { return changes }
        let registration = decision.registration
        changes.profiles.append(
            RegistrationChanges.Profile(
                registration: registration, isFirst: stored == nil,
                statusChange: StatusChange(from: stored?.status ?? .registered, to: registration.status),
                isAddressChanged: decision.isAddressChanged,
                userChange: isNew ? nil : changeOfUser(decision),
                isOfNewDevice: isNew))
        if let stored, let address = stored.profile.address, address.token != registration.profile.address?.token {
            let token = PlatformToken(platform: address.platform, token: address.token)
            changes.released = released(token, TokenTransfers(count: stored.tokenTransfers, day: stored.takenOn), in: app)
        }
        return changes
    }

    private static func changeOfUser(_ decision: Decision) -> RegistrationChanges.ChangeOfUser? {
        guard decision.changesUser else { return nil }
        return decision.losesUser ? .replaced : .first
    }

    /// Returns the row of a token that no device has any more. Returns nil if no device took the token, or if another device
    /// took it now.
    static func released(
        _ token: PlatformToken, _ tokenTransfers: TokenTransfers, in app: AppSerial
    ) -> RegistrationChanges.ReleasedToken? {
        guard tokenTransfers.count > 0 else { return nil }
        return RegistrationChanges.ReleasedToken(
            app: app, token: token, tokenTransfers: tokenTransfers, forgotten: forgottenAtOnce)
    }
}
