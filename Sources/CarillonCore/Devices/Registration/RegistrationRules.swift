package import CarillonWire

/// Decides what becomes of a device, and of another one that has its token, when it registers, is suspended or resumed.
///
/// The device is known by its credential, never by its token: who presents a token that another device has takes it, and
/// the other is suspended. A token that goes to and fro is at odds with that, so that it may be taken only some times a day.
package enum RegistrationRules {
    package struct Decision: Equatable, Sendable {
        package var registration: DeviceRegistration
        /// The device that had the token, and has it no more.
        package var displaced: DeviceRegistration?
        /// Whether anything is to be stored.
        package var isChanged: Bool
        /// Whether apps and operators see another status than before.
        package var isStatusChanged: Bool
        /// The device belonged to somebody, and does so no more: what was his is to be dropped.
        package var losesUser = false
        /// The device has another user than before, or none any more, or the first.
        package var changesUser = false
        /// The positions of the envelopes that ended with the change, as the store says.
        package var ended: [Int64] = []
        /// What the vendor said of the address before says nothing of this one.
        package var isAddressChanged = false

        package static func unchanged(_ registration: DeviceRegistration) -> Decision {
            Decision(registration: registration, isChanged: false, isStatusChanged: false)
        }

        /// It is suspended or resumed.
        package static func status(of registration: DeviceRegistration) -> Decision {
            Decision(registration: registration, isChanged: true, isStatusChanged: true)
        }
    }

    /// How often a token went from one device to another in a day; days are counted from 1970.
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
    ///   - confirms: Whether the device says the address now, and not only what stands beside it.
    ///   - current: What is stored of the device.
    ///   - holder: Another device that has the token of the profile, if there is one.
    ///   - released: Of the token, when nobody has it now.
    ///   - user: Whose the device is from now on; nil leaves it.
    package static func register(
        _ profile: DeviceProfile, confirms: Bool = true, over current: DeviceRegistration,
        heldBy holder: DeviceRegistration?, released: TokenTransfers? = nil, user: UserClaim? = nil, at now: Timestamp
    ) throws(Refusal) -> Decision {
        var registration = current
        let (profile, saidEnvironment) = found(profile, over: current)
        registration.profile = profile
        registration.saidEnvironment = saidEnvironment
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
            // What the vendor said until now was about the time before.
            registration.confirmedAt = now
        }
        return Decision(
            registration: registration, displaced: displaced, isChanged: registration != current,
            isStatusChanged: registration.status != current.status,
            losesUser: current.user != nil && registration.user != current.user,
            changesUser: registration.user != current.user,
            isAddressChanged: registration.addressRevision != current.addressRevision)
    }

    /// A device goes on saying in which environment its token is, also when the vendor's service knew it in the other.
    static func found(
        _ profile: DeviceProfile, over current: DeviceRegistration
    ) -> (DeviceProfile, saidEnvironment: PushEnvironment?) {
        guard let said = current.saidEnvironment, profile.hasToken(of: current.profile),
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
        // An operator's word stands.
        if loser.status == .registered || loser.status == .suspended(.tokenDead) {
            loser.status = .suspended(.tokenTaken)
            loser.statusAt = holder.nextStatusAt(now)
        }
        return (loser, tokenTransfers)
    }

    /// - Parameter revision: Of the address that the reason is about; nil when it is about the device.
    /// - Returns: Nil when nothing changes: it is suspended already, or has another address since.
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

    /// By an operator, whatever the reason was. Nil when it is not suspended.
    package static func resume(_ current: DeviceRegistration, at now: Timestamp) -> DeviceRegistration? {
        guard current.status != .registered else { return nil }
        var resumed = current
        resumed.status = .registered
        resumed.statusAt = current.nextStatusAt(now)
        return resumed
    }
}
