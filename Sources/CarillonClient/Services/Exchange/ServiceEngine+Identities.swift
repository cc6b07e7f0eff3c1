import CarillonWire

/// The identities of other devices.
extension ServiceEngine {
    func setVerifier(_ verifier: (@Sendable (ServiceApplication, String, Bool) async -> Bool)?) {
        self.verifier.verify = verifier
        ownCache.clearTrust()
    }

    /// Accepts the newest other identity that a device presented. Returns false if it presented only the accepted one.
    ///
    /// - Parameter fingerprint: The fingerprint that the identity must have; nil accepts any.
    func accept(_ device: String, fingerprint: String? = nil) async throws -> Bool {
        let isAccepted = try await box.accept(device, fingerprint: fingerprint.map { Fingerprint.standard($0) })
        // The former identity is not trusted any more, and recent search results contain its key.
        ownCache.clearTrust()
        if isAccepted { providerCache.removeAll() }
        return isAccepted
    }

    func identities() async throws -> [ServiceIdentity] {
        let isServer = presentOwner.user == nil
        return try await box.identities().map { peer, pin in
            ServiceIdentity(
                application: ServiceApplication(peer), user: isServer && !pin.user.isEmpty ? pin.user : nil,
                fingerprint: Fingerprint.text(of: pin.identity),
                offeredFingerprint: pin.offered.map { Fingerprint.text(of: $0) })
        }
    }

    /// Checks whether a device that presents a key can be trusted.
    ///
    /// - Parameter user: The user of the device, if this device is a backend device and knows the user.
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/sealInvalid`` if the key is not signed, and with
    ///   ``ServiceError/Code/identityChanged``.
    func authenticate(_ bundle: KeyBundle, of peer: ServicePeer, user: String?) async throws {
        guard bundle.until > Self.now - ServiceBox.keptSeconds * 1000 else {
            throw ServiceError(.providerKeyChanged, "The other's key is too old.")
        }
        if ownCache.isTrusted(bundle, of: peer, user: user) { return }
        guard bundle.isSigned(for: peer.device) else {
            throw ServiceError(.sealInvalid, "The other's key is not signed by its identity.")
        }
        let owner = presentOwner
        let (application, fingerprint) = (ServiceApplication(peer), Fingerprint.text(of: bundle.identity))
        while true {
            // An identity that the app has not accepted is not stored: another request and the next run verify it again.
            let acceptsFirst = verifier.verify == nil || ownCache.isVerified(bundle.identity, of: peer, user: user)
            let trust = try await box.trust(
                of: peer, bundle.identity, user: user, at: Self.now, acceptsFirst: acceptsFirst)
            let isAccepted: Bool
            switch trust {
            case .known:
                // Another user of this device has other identities.
                if owner == presentOwner { ownCache.trust(bundle, of: peer, user: user) }
                return
            case .first where acceptsFirst: return
            case .first:
                isAccepted = await verify(
                    IdentityVerifier.Question(owner: owner, peer: peer, user: user, fingerprint: fingerprint, isFirst: true))
                if isAccepted, owner == presentOwner { ownCache.verify(bundle.identity, of: peer, user: user) }
            case .changed(let isNew):
                isAccepted = await verify(
                    IdentityVerifier.Question(owner: owner, peer: peer, user: user, fingerprint: fingerprint, isFirst: false)
                )
                if isAccepted {
                    _ = try await accept(peer.device, fingerprint: fingerprint)
                    return
                }
                guard isNew else { break }
                clientListeners.notify([.identityChanged(application, fingerprint: fingerprint)])
                providerListeners.notify([.identityChanged(application, fingerprint: fingerprint)])
            }
            guard isAccepted else { break }
            guard owner == presentOwner else {
                throw ServiceError(.userMismatch, "The device belongs to another user by now, or to none.")
            }
        }
        throw ServiceError(
            .identityChanged, "The identity of \(peer.app) on \(peer.device) is not the one that was accepted.")
    }

    /// Calls the verifier of the app. Other requests with the same question wait for the same answer.
    ///
    /// - Returns: False also if the app set no verifier.
    private func verify(_ question: IdentityVerifier.Question) async -> Bool {
        guard let task = verifier.task(for: question) else { return false }
        defer { verifier.answered(question) }
        return await task.value
    }
}
