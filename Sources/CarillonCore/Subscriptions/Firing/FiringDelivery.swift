import CarillonWire

/// A notification for a device, and the effect that must count for its delivery.
package struct FiringDelivery: Sendable {
    var device: DeviceSerial
    var app: AppSerial
    var origin: Origin
    var notification: FiredNotification
    /// See ``FiringTopic``.
    var topic: String?
    var ttl: Int64
    var isAlwaysPushed: Bool
    var effect: Effect
    var at: Timestamp
}

/// Delivers notifications to devices of another home.
///
/// A repetition delivers nothing twice, because each effect counts once. A notification that was delivered before is refused then.
package struct FiringDeliveries: HomeQuestion {
    /// The results, in the order of the deliveries.
    package typealias Answer = [DeliveryResult]

    package let shard: Shard?
    package let deliveries: [FiringDelivery]

    /// - Parameters:
    ///   - shard: A shard of the home.
    ///   - deliveries: Those to devices of the home.
    init(to shard: Shard, _ deliveries: [FiringDelivery]) {
        self.shard = shard
        self.deliveries = deliveries
    }
}
