import CarillonWire

/// A notification for a device, and the effect that must be applied when it is delivered.
package struct FiringDelivery: Sendable {
    var device: DeviceSerial
    var app: AppSerial
    var origin: Origin
    var notification: FiredNotification
    /// See ``FiringCollapseKey``.
    var topic: String?
    var ttl: Int64
    var isAlwaysPushed: Bool
    var effect: Effect
    var at: Timestamp
}

/// Delivers notifications to devices of another home.
///
/// A repeated request delivers no notification twice, because each effect is applied once. A notification that was delivered
/// before is then refused.
package struct FiringDeliveries: HomeQuestion {
    /// The results, in the order of the deliveries.
    package typealias Answer = [DeliveryResult]

    package let shard: Shard?
    package let deliveries: [FiringDelivery]

    /// - Parameters:
    ///   - shard: A shard of the home.
    ///   - deliveries: The deliveries to devices of this home.
    init(to shard: Shard, _ deliveries: [FiringDelivery]) {
        self.shard = shard
        self.deliveries = deliveries
    }
}
