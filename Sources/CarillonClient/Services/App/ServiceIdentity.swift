import CarillonWire

/// The identity of an installation that this device accepted, by its fingerprint.
public struct ServiceIdentity: Hashable, Sendable {
    /// The installation.
    public var application: ServiceApplication
    /// The user of the installation, if this device is a server: the identities of its users are accepted separately. Nil if no
    /// user is known, and if this device has a user.
    public var user: String?
    /// The fingerprint of the accepted identity. Compare it with ``ServiceProvider/fingerprint`` at the other device.
    public var fingerprint: String
    /// The fingerprint of another identity that the installation presented last; nil if it presented no other. No request is sent
    /// to this identity, and none is accepted from it, before ``ServiceClient/accept(_:fingerprint:)``.
    public var offeredFingerprint: String?
}

extension ServiceClient {
    /// The identities of other installations that this device accepted for its present user. They stay when the user signs out,
    /// and are removed with ``PushClient/signOut()``.
    ///
    /// - Throws: ``PushError`` of the storage.
    public func identities() async throws -> [ServiceIdentity] { try await engine.identities() }

    /// Accepts the identity with a fingerprint that an installation presented. Requests that ended with
    /// ``ServiceError/Code/identityChanged`` can be made again then.
    ///
    /// - Parameters:
    ///   - application: The installation, with its ``ServiceApplication/device``.
    ///   - fingerprint: The value of ``ServiceIdentity/offeredFingerprint``; spaces and case are ignored.
    /// - Returns: False if the installation did not present such an identity, or the identity is accepted already.
    /// - Throws: ``PushError`` of the storage.
    public func accept(_ application: ServiceApplication, fingerprint: String) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device, fingerprint: fingerprint)
    }
}

extension ServiceProvider {
    /// Accepts the newest other identity that a consumer presented: its requests are handled from now on. Requests that ended
    /// with ``ServiceError/Code/identityChanged`` can be made again.
    ///
    /// - Returns: False if the consumer has presented only the accepted identity.
    /// - Throws: ``PushError`` of the storage.
    public func accept(_ application: ServiceApplication) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device)
    }

    /// Accepts the identity with a fingerprint that a consumer presented: see ``ServiceClient/accept(_:fingerprint:)``.
    public func accept(_ application: ServiceApplication, fingerprint: String) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device, fingerprint: fingerprint)
    }
}
