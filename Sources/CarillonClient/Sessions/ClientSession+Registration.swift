import CarillonWire

/// The registration of the device, which ends with the first hello of the server that accepts its credential.
extension ClientSession {
    /// A registration begins; its secret is stored before the first attempt, and is the same for each, so that one whose
    /// answer was lost leads to the same device. If the answer does not say that each answer has the same credential, the secret is
    /// kept until the first hello of the server: a server of an earlier version replaces the credential with each answer, and answers
    /// can arrive in another order.
    mutating func registrationBegan(secret: String) -> [SessionAction] {
        guard phase == .registering, registration.secret == nil else { return [] }
        registration.secret = secret
        return [.write(.saveRegistration(secret))]
    }

    /// - Parameters:
    ///   - isRepeatable: Each answer to the registration has the same credential: when the server refuses the credential, the device
    ///     is gone, and its secret is not needed any more.
    ///   - secret: The secret of the registration that the server answered. The answer to a registration before a sign-out is ignored.
    mutating func deviceRegistered(
        _ identity: DeviceIdentity, server: String? = nil, isRepeatable: Bool = false, of secret: String?
    ) -> [SessionAction] {
        guard phase == .registering, registration.secret == secret else { return [] }
        var former: [SessionAction] = []
        if let device = registration.identity?.device, device != identity.device {
            // Another install renewed the credential of the device that this install was, and the server forgot the registration.
            clearReports()
            former = [.write(.eraseIdentity), .notifySubscriptions(.deviceLost)] + pushDeviceLost()
        }
        registration.registered(as: identity)
        knownServer.formerAddress = nil
        knownServer.id = server
        phase = .opening
        availability.network = true
        let save: [SessionAction] = server.map { [.write(.saveServer(address: settings.server, id: $0))] } ?? []
        var saveDevice: [SessionAction] = [
            .write(.saveIdentity(identity)), .write(.saveRenewal(nil)), .markInstall(device: identity.device),
        ]
        if isRepeatable {
            registration.secret = nil
            saveDevice.append(.write(.saveRegistration(nil)))
        }
        return former + saveDevice + save + [.notifyAvailability(availability)]
    }

    /// - Parameter secret: The secret of the registration that failed; nil if none could be stored.
    mutating func deviceRegistrationFailed(
        _ failure: RegistrationFailure, of secret: String?, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase == .registering, registration.secret == secret else { return [] }
        switch failure {
        case .unreachable:
            availability.network = false
            phase = .waiting(until: now + schedule.failed(random: random))
            return [.notifyAvailability(availability)]
        case .unavailable(let retryAfter):
            availability.network = true
            phase = .waiting(until: now + schedule.failed(hint: retryAfter, random: random))
            return [.notifyAvailability(availability)]
        case .refused:
            availability.network = true
            registration.awaitsDemand = true
            phase = .resting
            return [.notifyAvailability(availability)]
                + endChannels { $0.registrationFailed(code: ChannelErrorCode.registrationRefused) }
                + (registration.mustRepeat ? removeDevice() : [])
        }
    }

    /// Whether a request whose credential the server refuses can succeed later.
    func canOutlast(refusalOf credential: String) -> Bool {
        guard let identity = registration.identity else { return false }
        return registration.secret != nil || identity.credential != credential
    }

    /// The server refused the credential of a request beside the socket. If the server never accepted the credential on the socket,
    /// the registration is repeated instead of the next attempt to connect.
    mutating func credentialRefused(_ credential: String) -> [SessionAction] {
        // A restored install renews its credential first, and a server at another address says who it is first.
        guard registration.secret != nil, registration.identity?.credential == credential, !registration.isRestored,
            knownServer.formerAddress == nil
        else { return [] }
        registration.mustRepeat = true
        return []
    }

    /// The server does not know a credential that it never accepted: another answer to the same registration replaced it.
    mutating func repeatRegistration(at now: ContinuousClock.Instant, random: Double) -> [SessionAction] {
        registration.mustRepeat = true
        phase = .waiting(until: now + schedule.failed(random: random))
        return endConnection(network: true)
    }
}
