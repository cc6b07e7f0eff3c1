import CarillonWire

/// The registration of the device, which ends with the first hello of the server that accepts its credential.
extension ClientSession {
    /// A registration begins; its secret is stored before the first attempt, and is the same for each, so that one whose
    /// answer was lost leads to the same device. The secret is kept until the first hello of the server: a server of an earlier
    /// version replaces the credential with each answer, and answers can arrive in another order.
    mutating func registrationBegan(secret: String) -> [SessionAction] {
        guard phase == .registering, registration == nil else { return [] }
        registration = secret
        return [.write(.saveRegistration(secret))]
    }

    mutating func deviceRegistered(_ identity: DeviceIdentity, server: String? = nil) -> [SessionAction] {
        guard phase == .registering else { return [] }
        self.identity = identity
        mustRegisterAgain = false
        (isRestored, renewal) = (false, nil)
        awaitsDemand = false
        formerServer = nil
        serverID = server
        phase = .opening
        availability.network = true
        let save: [SessionAction] = server.map { [.write(.saveServer(address: settings.server, id: $0))] } ?? []
        return [
            .write(.saveIdentity(identity)), .write(.saveRenewal(nil)), .markInstall(device: identity.device),
        ] + save
            + [.tellAvailability(availability)]
    }

    mutating func deviceRegistrationFailed(
        _ failure: RegistrationFailure, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase == .registering else { return [] }
        switch failure {
        case .unreachable:
            availability.network = false
            phase = .waiting(until: now + schedule.failed(random: random))
            return [.tellAvailability(availability)]
        case .unavailable(let retryAfter):
            availability.network = true
            phase = .waiting(until: now + schedule.failed(hint: retryAfter, random: random))
            return [.tellAvailability(availability)]
        case .refused:
            availability.network = true
            awaitsDemand = true
            phase = .resting
            return [.tellAvailability(availability)]
                + endChannels { $0.registrationFailed(code: ChannelErrorCode.registrationRefused) }
                + (mustRegisterAgain ? loseDevice() : [])
        }
    }

    /// The server does not know a credential that it never accepted: another answer to the same registration replaced it.
    mutating func repeatRegistration(at now: ContinuousClock.Instant, random: Double) -> [SessionAction] {
        mustRegisterAgain = true
        phase = .waiting(until: now + schedule.failed(random: random))
        return endConnection(network: true)
    }
}
