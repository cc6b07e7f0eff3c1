import CarillonWire

/// An install that a backup brought here gives itself another credential before it says anything else: whoever goes on with the one
/// before, on the hardware that the backup is of, is another device from then on.
extension ClientSession {
    /// What follows when it is known where the server is.
    var reaching: Phase { registration.isRestored ? .renewing : .opening }

    /// The secret is stored before the first attempt, and is the same for each: the server may take one whose answer is lost.
    mutating func renewalBegan(secret: String) -> [SessionAction] {
        guard phase == .renewing, registration.renewal == nil else { return [] }
        registration.renewal = secret
        return [.write(.saveRenewal(secret))]
    }

    /// The server accepted a credential of the device, and forgot the secret of its registration.
    mutating func credentialRenewed() -> [SessionAction] {
        guard phase == .renewing, var identity = registration.identity, let renewal = registration.renewal else { return [] }
        identity.credential = identity.renewed(with: renewal)
        registration.identity = identity
        registration.secret = nil
        registration.renewalEnded()
        phase = .opening
        availability.network = true
        return [
            .write(.saveIdentity(identity)), .write(.saveRenewal(nil)), .write(.saveRegistration(nil)),
            .markInstall(device: identity.device), .notifyAvailability(availability),
        ]
    }

    /// The server is of a version that knows no renewal.
    mutating func renewalUnsupported() -> [SessionAction] {
        guard phase == .renewing else { return [] }
        registration.renewalEnded()
        phase = .opening
        return [.write(.saveRenewal(nil))]
    }

    /// The server knows neither credential: the device is gone, another restored install has it, or another answer to its
    /// registration replaced the credential.
    mutating func renewalRefused(at now: ContinuousClock.Instant, random: Double) -> [SessionAction] {
        guard phase == .renewing else { return [] }
        if registration.secret != nil { return repeatRegistration(at: now, random: random) }
        phase = .resting
        return deviceUnknown(network: true)
    }

    mutating func renewalFailed(
        isReached: Bool, retryAfter: Duration?, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase == .renewing else { return [] }
        availability.network = isReached
        phase = .waiting(until: now + schedule.failed(hint: retryAfter, random: random))
        return [.notifyAvailability(availability)]
    }
}

extension DeviceIdentity {
    /// As the server reads it: the device, a point, and the secret.
    func renewed(with secret: String) -> String { "\(device).\(secret)" }
}
