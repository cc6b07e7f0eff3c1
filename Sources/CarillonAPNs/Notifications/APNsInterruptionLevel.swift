/// How much a notification can interrupt the user.
public struct APNsInterruptionLevel: RawRepresentable, Hashable, Sendable {
    /// The value of the `interruption-level` key.
    public let rawValue: String

    /// Makes a level from its name, for levels that this version does not define.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The notification is added to the list, without light or sound.
    public static let passive = APNsInterruptionLevel(rawValue: "passive")
    /// The notification is shown at once, lights the screen, and can play a sound.
    public static let active = APNsInterruptionLevel(rawValue: "active")
    /// The notification is shown at once, also during a Focus.
    public static let timeSensitive = APNsInterruptionLevel(rawValue: "time-sensitive")
    /// The notification is shown at once, and its sound ignores the mute switch. The app needs an entitlement from Apple.
    public static let critical = APNsInterruptionLevel(rawValue: "critical")
}
