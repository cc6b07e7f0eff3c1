package import CarillonWire

/// A change of a device that an app can refuse.
package enum RegistrationQuestion: Sendable {
    /// A device registers.
    case registration(DeviceProfile?, UserClaim?, isAnonymous: Bool)
    /// A device reports another push token, or its first one.
    case token(DeviceID, DeviceProfile, UserID?)

    /// The device; nil if it is not registered yet.
    package var device: DeviceID? {
        switch self {
        case .registration: nil
        case .token(let device, _, _): device
        }
    }
}

/// Requests approval of changes of devices from apps.
package protocol RegistrationApproval: Sendable {
    /// Whether the app has an approval hook. If not, every change is allowed.
    func hasHook(_ app: AppSerial) async throws -> Bool
    /// - Parameter serial: The serial number of the app; nil if the caller does not have it. A lookup by name can read a list of
    ///   apps.
    /// - Throws: ``Refusal`` if the app refuses, or if it did not answer in time.
    func ask(_ question: RegistrationQuestion, of app: AppID, serial: AppSerial?) async throws
}
