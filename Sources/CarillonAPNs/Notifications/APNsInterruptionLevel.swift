/// How much a notification may disturb.
public struct APNsInterruptionLevel: RawRepresentable, Hashable, Sendable {
    /// The value of the `interruption-level` key.
    public let rawValue: String

    /// A level by its name, for those that come after this version.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Into the list, without light or sound.
    public static let passive = APNsInterruptionLevel(rawValue: "passive")
    /// At once: lights the screen, may play a sound.
    public static let active = APNsInterruptionLevel(rawValue: "active")
    /// At once, and through a Focus.
    public static let timeSensitive = APNsInterruptionLevel(rawValue: "time-sensitive")
    /// At once, and past the mute switch. Needs an entitlement from Apple.
    public static let critical = APNsInterruptionLevel(rawValue: "critical")
}
