package import CarillonWire

// The effect of a call on the rows of a device. The rules read nothing: their caller passes facts, and the rules return which
// facts are missing.
extension RegistrationRules {
    /// The number of released tokens, taken on earlier days, that are removed when a token is released.
    package static let forgottenAtOnce = 10
    /// The number of times that one change is decided if the registration changes meanwhile.
    package static let mostDecisions = 32

    package enum Insertion: Sendable {
        /// Read the number of devices of the address, and decide again.
        case needsDevices(of: AddressQuota)
        case refused(InsertedDevice)
        /// The store assigns the serial of a new device.
        case decided(Device, RegistrationChanges)
    }

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

    // MARK: New devices

    /// Stores a device, or finds the device that the same registration made before.
    ///
    /// - Parameter limit: The number of devices that an app may have.
    package static func insert(
        _ new: NewDevice, limit: Int, at now: Timestamp, knowing facts: NewDeviceFacts,
        credential: NewCredential
    ) -> Insertion {
        guard let app = facts.app, new.key == nil || app.isKeyInForce else { return .refused(.notAllowed) }
        guard facts.known != nil || app.devices < limit else {
            return .refused(.refused(Refusal(.devicesTooMany, "The app has reached its limit of \(limit) devices.")))
        }
        if let quota = new.quota, facts.known == nil {
            guard let count = facts.devicesOfAddress else { return .needsDevices(of: quota) }
            guard count < quota.limit else { return .refused(.addressFull) }
        }
        var decision: Decision?
        if new.profile != nil || new.user != nil {
            let current =
                facts.stored
                ?? DeviceRegistration(device: facts.known?.serial ?? DeviceSerial(0), at: facts.known?.createdAt ?? now)
            do throws(Refusal) {
                decision = try register(
                    new.profile ?? current.profile, confirms: new.profile != nil, over: current, facts.token,
                    user: new.user, at: now)
            } catch {
                return .refused(.refused(error))
            }
        }
        var changes = RegistrationChanges(in: app.serial)
        if let decision {
            changes = Self.changes(
                of: decision, in: app.serial, after: facts.stored, facts.token, isNew: facts.known == nil)
        }
        var device =
            facts.known
            ?? Device(
                serial: DeviceSerial(0), id: new.proposed, app: app.serial, appID: new.app,
                credentialHash: credential.hash(for: new.proposed), createdAt: now,
                isAnonymous: new.isAnonymous, seenAt: now)
        if facts.known == nil {
            changes.new = RegistrationChanges.NewRow(
                device: device, key: new.key, registration: new.registration, address: new.quota?.address)
            changes.devices = 1
        } else {
            device.credentialHash = credential.hash(for: device.id)
            changes.renewed = device
        }
        return .decided(device, changes)
    }

    // MARK: Registrations

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

    private static func register(
        _ profile: DeviceProfile, confirms: Bool, over current: DeviceRegistration, _ token: TokenFacts?, user: UserClaim?,
        at now: Timestamp
    ) throws(Refusal) -> Decision {
        try register(
            profile, confirms: confirms, over: current, tokenHolder: token?.holder,
            released: token?.holder == nil ? token?.released : nil, user: user, at: now)
    }

    private static func changes(
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
    private static func released(
        _ token: PlatformToken, _ tokenTransfers: TokenTransfers, in app: AppSerial
    ) -> RegistrationChanges.ReleasedToken? {
        guard tokenTransfers.count > 0 else { return nil }
        return RegistrationChanges.ReleasedToken(
            app: app, token: token, tokenTransfers: tokenTransfers, forgotten: forgottenAtOnce)
    }

    // MARK: Ends

    /// - Parameter cutoff: A device that was seen later stays.
    /// - Returns: Nil if the device stays.
    package static func end(
        unlessSeenAfter cutoff: RetentionCutoff? = nil, knowing facts: DeviceEndFacts
    ) -> RegistrationChanges? {
        if let cutoff, facts.seenAt > cutoff.wall || facts.seenServed > cutoff.served { return nil }
        var changes = RegistrationChanges(in: facts.app)
        changes.removed = facts.device
        if facts.devicesOfApp > 0 { changes.devices = -1 }
        if let token = facts.token { changes.released = released(token, facts.tokenTransfers, in: facts.app) }
        return changes
    }
}
