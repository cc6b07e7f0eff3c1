import CarillonWire

/// Who the server is, and where: an install goes on when its server moves, and stays away from any other.
///
/// The credential is said to nobody who did not say the server's id first, unless it was he who gave it, at the same
/// address. An id proves nothing by itself; TLS does, for the name in the address. It keeps an app that was given a wrong
/// address from forgetting who it is.
extension ClientSession {
    /// The configured address said who it is.
    mutating func serverLocated(
        _ server: ServerBody, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase == .locating, var identity = registration.identity else { return [] }
        availability.network = true
        if let id = knownServer.id, id != server.server, knownServer.formerAddress != nil {
            phase = .waiting(until: now + schedule.failed(random: random))
            return [
                .notifyAvailability(availability),
                .noteFailure(
                    .storageMismatch,
                    "The storage belongs to another server than that at \(settings.server); give the right address, or use another directory."
                ),
            ]
        }
        knownServer.mustLocate = false
        phase = reaching
        // One at the same address that has another id now will say whether it knows this device.
        guard knownServer.id == nil || knownServer.id == server.server else { return [.notifyAvailability(availability)] }
        knownServer.formerAddress = nil
        knownServer.id = server.server
        identity.socket = server.socket
        registration.identity = identity
        let moves = channels.machines.keys.sorted().flatMap { identifier in
            change(identifier) { channel in
                guard let token = channel.endpoint?.token, let endpoint = ChannelEndpoint(server.endpoints + token) else {
                    return .none
                }
                return channel.moved(to: endpoint)
            }
        }
        return [
            .write(.saveIdentity(identity)), .write(.saveServer(address: settings.server, id: server.server)),
            .notifyAvailability(availability),
        ] + moves + deliverTokens(at: now)
    }

    /// The configured address did not say who it is.
    mutating func serverNotLocated(
        isReached: Bool, retryAfter: Duration? = nil, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase == .locating else { return [] }
        guard knownServer.formerAddress != nil else {
            // The address that the server gave once is as good as any.
            knownServer.mustLocate = false
            phase = reaching
            return []
        }
        availability.network = isReached
        phase = .waiting(until: now + schedule.failed(hint: retryAfter, random: random))
        return [.notifyAvailability(availability)]
    }

    // MARK: The end of the device

    /// The app wants this device gone.
    mutating func signedOut(at now: ContinuousClock.Instant) -> [SessionAction] {
        var actions = Set(channels.machines.keys).union(messages.buffers.keys).sorted().flatMap { removeChannel($0) }
        if let identity = registration.identity {
            let deregistration = Deregistration(
                device: identity.device, credential: identity.credential,
                nextCredential: registration.renewal.map(identity.renewed), registration: registration.secret,
                server: knownServer.formerAddress ?? settings.server)
            deregistrations.signedOut(deregistration)
            actions.append(.write(.saveDeregistration(deregistration)))
            if registration.secret != nil {
                // The next device is another one.
                registration.secret = nil
                actions.append(.write(.saveRegistration(nil)))
            }
        }
        registration.lost()
        knownServer.signedOut()
        clearReports()
        (user.pending, user.accepted) = (nil, nil)
        actions += [
            .write(.eraseIdentity), .write(.eraseServiceIdentities), .write(.saveUser(nil)), .write(.saveAcceptedUser(nil)),
        ]
        actions += pushDeviceLost() + [.notifySubscriptions(.signedOut)]
        switch phase {
        case .identifying, .live: actions += close(.normal)
        case .registering, .locating, .renewing: phase = .resting
        // A socket that opens now finds nobody, and is closed.
        case .opening: phase = .waiting(until: now)
        case .stopped, .resting, .deregistering, .closing, .waiting: break
        }
        return actions
    }

    /// The server knows that the device is gone.
    mutating func deregistered(_ deregistration: Deregistration) -> [SessionAction] {
        deregistrations.succeeded(deregistration)
        return [.write(.removeDeregistration(device: deregistration.device))]
            + (phase == .deregistering ? proceed() : nextDeregistration())
    }

    /// Plans to send the deregistration again, because the server was not reached or refused it. The client goes on meanwhile, so
    /// that a deregistration that always fails does not stop the work of another device.
    mutating func deregistrationFailed(
        _ deregistration: Deregistration, retryAfter: Duration? = nil, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        guard phase != .stopped else {
            deregistrations.interrupted()
            return []
        }
        deregistrations.failed(deregistration, retryAfter: retryAfter, at: now, random: random)
        return phase == .deregistering ? proceed() : []
    }

    /// Sends a deregistration beside the live connection.
    mutating func nextDeregistration() -> [SessionAction] {
        guard phase == .live, let deregistration = deregistrations.begin() else { return [] }
        return [.deregister(deregistration)]
    }
}
