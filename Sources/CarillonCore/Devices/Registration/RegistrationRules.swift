package import CarillonWire

/// Decides how the registrations change of a device that registers, is suspended or resumed, and of another device that has its
/// token.
///
/// A device is identified by its credential, never by its push token. A device that presents another device's token takes the
/// token, and the other device is suspended. A token belongs to one device, so a token that moves to and fro is a fault. The
/// number of its transfers per day is therefore limited to ``tokenTransfersPerDay``.
package enum RegistrationRules {
    package struct Decision: Equatable, Sendable {
        package var registration: DeviceRegistration
        /// The device that had the token and lost it.
        package var displaced: DeviceRegistration?
        /// Whether a row must be stored.
        package var isChanged: Bool
        /// Whether apps and operators see another status than before.
        package var isStatusChanged: Bool
        /// Whether the device loses the user that it had, so that the former user's data must be dropped.
        package var losesUser = false
        /// Whether the device has another user than before, its first user, or no user any more.
        package var changesUser = false
        /// The positions of the envelopes that ended with the change, from the store.
        package var ended: [Int64] = []
        /// Whether the address changed, so that earlier reports of the vendor's service do not apply to it.
        package var isAddressChanged = false

        package static func unchanged(_ registration: DeviceRegistration) -> Decision {
            Decision(registration: registration, isChanged: false, isStatusChanged: false)
        }

        /// The device is suspended or resumed.
        package static func status(of registration: DeviceRegistration) -> Decision {
            Decision(registration: registration, isChanged: true, isStatusChanged: true)
        }
    }

    /// The number of transfers of a token between devices on a day. Days are counted from 1970.
    package struct TokenTransfers: Equatable, Sendable {
        package var count: Int
        package var day: Int64

        package init(count: Int, day: Int64) {
            self.count = count
            self.day = day
        }
    }

    package static let tokenTransfersPerDay = 5
    private static let daySeconds: Int64 = 86_400

    /// - Parameters:
    ///   - confirms: Whether the device reports the address now, and not only other members of its profile.
    ///   - current: The stored registration of the device.
    ///   - holder: Another device that has the token of the profile, if there is one.
    ///   - released: The transfers of the token, if no device has it now.
    ///   - user: The device's user from now on; nil for no change.
    package static func register(
        _ profile: DeviceProfile, confirms: Bool = true, over current: DeviceRegistration,
        tokenHolder holder: DeviceRegistration?, released: TokenTransfers? = nil, user: UserClaim? = nil, at now: Timestamp
    ) throws(Refusal) -> Decision {
        var registration = current
        let (profile, reportedEnvironment) = found(profile, over: current)
        registration.profile = profile
        registration.reportedEnvironment = reportedEnvironment
        if let user { registration.user = user.user }
        var displaced: DeviceRegistration?
        if profile.address != current.profile.address {
            registration.addressRevision += 1
            registration.confirmedAt = now
            if !profile.hasToken(of: current.profile) { registration.tokenTransfers = 0 }
            if let released, released.day == now.seconds / daySeconds {
                (registration.tokenTransfers, registration.takenOn) = (released.count, released.day)
            }
            if let holder, holder.device != current.device {
                let (loser, tokenTransfers) = try take(from: holder, at: now)
                (registration.tokenTransfers, registration.takenOn) = (tokenTransfers, loser.takenOn)
                displaced = loser
            }
        } else if confirms, now.seconds - current.confirmedAt.seconds >= daySeconds || now < current.confirmedAt {
            registration.confirmedAt = now
        }
        if confirms, profile.address != nil, case .suspended(let reason) = current.status, reason.endsWithRegistration {
            registration.status = .registered
            registration.statusAt = current.nextStatusAt(now)
            // Earlier reports of the vendor's service are about the time before the suspension ended.
            registration.confirmedAt = now
        }
        return Decision(
            registration: registration, displaced: displaced, isChanged: registration != current,
            isStatusChanged: registration.status != current.status,
            losesUser: current.user != nil && registration.user != current.user,
            changesUser: registration.user != current.user,
            isAddressChanged: registration.addressRevision != current.addressRevision)
    }

    /// Returns the profile with the stored address, if the device still reports the environment that it reported before the
    /// vendor's service accepted the token in the other environment.
    static func found(
        _ profile: DeviceProfile, over current: DeviceRegistration
    ) -> (DeviceProfile, reportedEnvironment: PushEnvironment?) {
        guard let said = current.reportedEnvironment, profile.hasToken(of: current.profile),
            profile.address?.environment == said || profile.address == current.profile.address
        else { return (profile, nil) }
        var found = profile
        found.address = current.profile.address
        return (found, said)
    }

    private static func take(
        from holder: DeviceRegistration, at now: Timestamp
    ) throws(Refusal) -> (loser: DeviceRegistration, tokenTransfers: Int) {
        let today = now.seconds / daySeconds
        let tokenTransfers = (holder.takenOn == today ? holder.tokenTransfers : 0) + 1
        guard tokenTransfers <= tokenTransfersPerDay else {
            throw Refusal(
                .pushTokenContested,
                "The push token moved between devices \(tokenTransfersPerDay) times today and stays with its device until tomorrow; retry then.",
                retryAfterSeconds: Int((today + 1) * daySeconds - now.seconds))
        }
        var loser = holder
        loser.profile.removeToken()
        loser.addressRevision += 1
        loser.tokenTransfers = 0
        loser.takenOn = today
        // A suspension by an operator stays.
        if loser.status == .registered || loser.status == .suspended(.tokenDead) {
            loser.status = .suspended(.tokenTaken)
            loser.statusAt = holder.nextStatusAt(now)
        }
        return (loser, tokenTransfers)
    }

    /// - Parameter revision: The revision of the address that the reason is about; nil if the reason is about the device.
    /// - Returns: Nil if nothing changes: the device is suspended already, or has another address now.
    package static func suspend(
        _ current: DeviceRegistration, because reason: SuspensionReason, ofRevision revision: Int64? = nil,
        knownSince: Timestamp? = nil, at now: Timestamp
    ) -> DeviceRegistration? {
        if let revision, revision != current.addressRevision { return nil }
        // The device confirmed the token after the vendor had found it dead (Apple's timestamp of a 410).
        if let knownSince, knownSince < current.confirmedAt { return nil }
        switch current.status {
        case .registered: break
        case .suspended(let earlier):
            guard reason == .byOperator, earlier != .byOperator else { return nil }
        }
        var suspended = current
        suspended.status = .suspended(reason)
        suspended.statusAt = current.nextStatusAt(now)
        return suspended
    }

    /// Resumes a device for an operator, for any reason of the suspension. Returns nil if the device is not suspended.
    package static func resume(_ current: DeviceRegistration, at now: Timestamp) -> DeviceRegistration? {
        guard current.status != .registered else { return nil }
        var resumed = current
        resumed.status = .registered
        resumed.statusAt = current.nextStatusAt(now)
        return resumed
    }
}
