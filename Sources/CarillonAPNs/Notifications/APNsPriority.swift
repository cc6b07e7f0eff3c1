/// How urgently the service delivers a notification.
public struct APNsPriority: RawRepresentable, Hashable, Sendable {
    /// The value of the `apns-priority` header.
    public let rawValue: Int

    /// A priority by its number; the service knows 1, 5 and 10, and others are refused before sending.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Deliver at once. The service's own default.
    public static let immediate = APNsPriority(rawValue: 10)
    /// Deliver with regard to the device's power; may be grouped or held back.
    public static let considerPower = APNsPriority(rawValue: 5)
    /// Power comes before all else: the device is never woken.
    public static let neverWake = APNsPriority(rawValue: 1)
}
