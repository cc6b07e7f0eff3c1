/// How urgently APNs delivers a notification.
public struct APNsPriority: RawRepresentable, Hashable, Sendable {
    /// The value of the `apns-priority` header.
    public let rawValue: Int

    /// Makes a priority from its number. APNs accepts 1, 5 and 10; the client rejects other numbers.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Deliver immediately. The default of APNs.
    public static let immediate = APNsPriority(rawValue: 10)
    /// Deliver with regard to the device's power. The notification may be grouped with others or delayed.
    public static let considerPower = APNsPriority(rawValue: 5)
    /// Give priority to the device's power: the device is never woken.
    public static let neverWake = APNsPriority(rawValue: 1)
}
