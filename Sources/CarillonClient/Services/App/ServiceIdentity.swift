import CarillonWire

/// The identity of an install that this device accepted, by its fingerprint.
public struct ServiceIdentity: Hashable, Sendable {
    /// The install.
    public var application: ServiceApplication
    /// The user of the install, where this device is a server: the identities of its users are accepted one by one. Nil where no user is
    /// known, and at a device that belongs to a user.
    public var user: String?
    /// Of the accepted identity: compare it with ``ServiceProvider/fingerprint`` of the other.
    public var fingerprint: String
    /// Of another identity that the install came with since, last. Nothing is sent to it, and nothing is taken from it, before
    /// ``ServiceClient/accept(_:fingerprint:)``. Nil: none.
    public var offeredFingerprint: String?
}

extension ServiceClient {
    /// The identities of other installs that this device accepted: those that the present user of the device met. They stay when the user
    /// signs out, and are forgotten with ``PushClient/signOut()``.
    ///
    /// - Throws: ``PushError`` of the storage.
    public func identities() async throws -> [ServiceIdentity] { try await engine.identities() }

    /// Accepts the identity with a fingerprint that an install came with. Requests that ended with
    /// ``ServiceError/Code/identityChanged`` can be made again then.
    ///
    /// - Parameters:
    ///   - application: The install, with its ``ServiceApplication/device``.
    ///   - fingerprint: As ``ServiceIdentity/offeredFingerprint`` has it; spaces and case do not count.
    /// - Returns: False when the install did not come with such an identity, or it is accepted already.
    /// - Throws: ``PushError`` of the storage.
    public func accept(_ application: ServiceApplication, fingerprint: String) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device, fingerprint: fingerprint)
    }
}

extension ServiceProvider {
    /// Accepts the identity that a consumer came with last: its requests are handled from now on. Those that ended with
    /// ``ServiceError/Code/identityChanged`` can be made again.
    ///
    /// - Returns: False when there is none but the accepted one.
    /// - Throws: ``PushError`` of the storage.
    public func accept(_ application: ServiceApplication) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device)
    }

    /// Accepts the identity with a fingerprint that a consumer came with: see ``ServiceClient/accept(_:fingerprint:)``.
    public func accept(_ application: ServiceApplication, fingerprint: String) async throws -> Bool {
        guard let device = application.device else { return false }
        return try await engine.accept(device, fingerprint: fingerprint)
    }
}
