package import CarillonWire

// Requests that change the registration of a stored device. The rules read nothing: their caller passes facts, and the rules
// return which facts are missing.
extension RegistrationRules {
    /// The number of times that one change is decided if the registration changes meanwhile.
    package static let mostDecisions = 32

    package enum Change: Sendable {
        /// Read the facts of the token, and decide again.
        case needsToken(DeviceProfile.Address, of: AppSerial)
        case decided(Result<Ruling, Refusal>)
    }

    package struct Ruling: Equatable, Sendable {
        package var decision: Decision
        package var changes: RegistrationChanges
    }

    /// The decision on a request that changes nothing.
    package struct Unchanged: Equatable, Sendable {
        package var decision: Decision
        /// Whether the device reports its address now.
        package var confirms: Bool
    }

    /// Returns the decision if the request matches the present state. Returns nil if a change is possible, so that more
    /// facts are needed.
    package static func unchanged(
        by request: RegistrationRequest, over current: DeviceRegistration, at now: Timestamp
    ) -> Unchanged? {
        switch request {
        case .nothing: return Unchanged(decision: .unchanged(current), confirms: false)
        case .becomes: return nil
        case .reports(let profile, let confirms, let user):
            guard !reportsOtherAddress(profile, over: current) else { return nil }
            do throws(Refusal) {
                let decision = try register(profile, confirms: confirms, over: current, nil, user: user, at: now)
                guard !decision.isChanged else { return nil }
                return Unchanged(decision: decision, confirms: confirms && profile.address != nil)
            } catch {
                return nil
            }
        }
    }

    package static func change(
        _ request: RegistrationRequest, at now: Timestamp, knowing facts: RegistrationFacts
    ) -> Change {
        let current = facts.current
        let decision: Decision
        do throws(Refusal) {
            switch request {
            case .nothing: decision = .unchanged(current)
            case .becomes(let registration): decision = .status(of: registration)
            case .reports(let profile, let confirms, let user):
                if let address = missingToken(for: profile, over: current, facts.token) {
                    return .needsToken(address, of: facts.app)
                }
                decision = try register(profile, confirms: confirms, over: current, facts.token, user: user, at: now)
            }
        } catch {
            return .decided(.failure(error))
        }
        let changes = Self.changes(of: decision, in: facts.app, after: facts.stored, facts.token)
        return .decided(.success(Ruling(decision: decision, changes: changes)))
    }

    /// The push token whose facts are missing.
    private static func missingToken(
        for profile: DeviceProfile, over current: DeviceRegistration, _ token: TokenFacts?
    ) -> DeviceProfile.Address? {
        token == nil && reportsOtherAddress(profile, over: current) ? profile.address : nil
    }

    /// Whether the address of a profile differs from the stored one. A device can continue to report the environment that it
    /// reported before the vendor's service accepted the token in the other environment.
    private static func reportsOtherAddress(_ profile: DeviceProfile, over current: DeviceRegistration) -> Bool {
        found(profile, over: current).0.address != current.profile.address
    }

    static func register(
        _ profile: DeviceProfile, confirms: Bool, over current: DeviceRegistration, _ token: TokenFacts?, user: UserClaim?,
        at now: Timestamp
    ) throws(Refusal) -> Decision {
        try register(
            profile, confirms: confirms, over: current, tokenHolder: token?.holder,
            released: token?.holder == nil ? token?.released : nil, user: user, at: now)
    }
}
