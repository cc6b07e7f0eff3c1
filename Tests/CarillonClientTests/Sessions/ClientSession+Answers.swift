@testable import CarillonClient

/// Answers to the registration that is under way.
extension ClientSession {
    mutating func deviceRegistered(_ identity: DeviceIdentity, server: String? = nil) -> [SessionAction] {
        deviceRegistered(identity, server: server, of: registration.secret)
    }

    mutating func deviceRegistrationFailed(
        _ failure: RegistrationFailure, at now: ContinuousClock.Instant, random: Double
    ) -> [SessionAction] {
        deviceRegistrationFailed(failure, of: registration.secret, at: now, random: random)
    }
}
