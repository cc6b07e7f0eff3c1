package import CarillonWire
import Metrics
import Synchronization

/// Applies the rate limits of channels, devices, apps and network addresses.
package final class RateLimits: Sendable {
    package struct Settings: Equatable, Sendable {
        /// The maximum number of anonymous devices of one address; nil: no limit.
        package var anonymousDevices: Int?
        /// Messages to one channel; nil: no limit.
        package var channelMessages: Rate?
        /// Messages to all channels of one device.
        package var deviceMessages: Rate?
        /// Messages to all devices of one app.
        package var appMessages: Rate?
        /// Updates of all items of one app.
        package var appUpdates: Rate?
        /// Channels that one device opens.
        package var deviceRegistrations: Rate?
        /// Attachments that one device, or the senders of one app, begin to upload.
        package var uploads: Rate?
        /// Service requests of one device.
        package var serviceRequests: Rate?
        /// Devices and channels that are registered from one address.
        package var addressRegistrations: Rate?

        package init() {
            anonymousDevices = 10_000
            channelMessages = Rate(perSecond: 1000, burst: 20_000)
            deviceMessages = Rate(perSecond: 2000, burst: 40_000)
            appMessages = Rate(perSecond: 100_000, burst: 1_000_000)
            appUpdates = Rate(perSecond: 100_000, burst: 1_000_000)
            deviceRegistrations = Rate(perSecond: 20, burst: 2 * Limits.channelsPerDevice)
            uploads = Rate(perSecond: 50, burst: 2000)
            serviceRequests = Rate(perSecond: 2500, burst: 10_000)
            addressRegistrations = Rate(perSecond: 100, burst: 20_000)
        }
    }

    private let channelMessages: Meter<ChannelSerial>
    private let deviceMessages: Meter<DeviceSerial>
    private let appMessages: Meter<AppSerial>
    private let appUpdates: Meter<AppSerial>
    private let deviceRegistrations: Meter<DeviceSerial>
    private let uploads: Meter<AttachmentUser>
    private let serviceRequests: Meter<DeviceSerial>
    private let addressRegistrations: Meter<NetworkAddress>
    private let anonymousDevices: Int?
    /// Addresses that reached the limit of anonymous devices, and the time until which the store is not read for them again.
    private let fullAddresses = Mutex<[NetworkAddress: Int64]>([:])
    private let anonymousRefused = ServerMetric.quotaRefusals.counter("anonymous_devices")
    private let ticks: TickSource

    package init(settings: Settings, ticks: TickSource) {
        channelMessages = Meter(settings.channelMessages, of: "channel", "messages to this channel")
        deviceMessages = Meter(settings.deviceMessages, of: "device", "messages to this device")
        appMessages = Meter(settings.appMessages, of: "app", "messages to this app")
        appUpdates = Meter(settings.appUpdates, of: "item", "updates of this app's items")
        deviceRegistrations = Meter(settings.deviceRegistrations, of: "device", "channels opened by this device")
        uploads = Meter(settings.uploads, of: "upload", "new uploads")
        serviceRequests = Meter(settings.serviceRequests, of: "request", "service requests of this device")
        addressRegistrations = Meter(
            settings.addressRegistrations, of: "address", "devices and channels from this address")
        anonymousDevices = settings.anonymousDevices
        self.ticks = ticks
    }

    /// Counts a message.
    ///
    /// - Throws: ``ErrorCode/rateLimited``, with the time after which a retry can succeed.
    package func takeMessage(to channel: ChannelSerial, of device: DeviceSerial, in app: AppSerial) throws(Refusal) {
        let now = ticks.now()
        try channelMessages.take(channel, at: now)
        try deviceMessages.take(device, at: now)
        try appMessages.take(app, at: now)
    }

    /// Counts an update of an item of an app.
    func takeUpdate(of app: AppSerial) throws(Refusal) { try appUpdates.take(app, at: ticks.now()) }

    /// Counts the start of an upload of an attachment.
    package func takeUpload(by owner: AttachmentUser) throws(Refusal) { try uploads.take(owner, at: ticks.now()) }

    /// Counts a service request of a device.
    package func takeServiceRequest(by device: DeviceSerial) throws(Refusal) {
        try serviceRequests.take(device, at: ticks.now())
    }

    /// Counts the registration of a device from an address.
    package func takeDevice(from address: NetworkAddress?) throws(Refusal) {
        if let address { try addressRegistrations.take(address.owner, at: ticks.now()) }
    }

    /// Returns the limit of anonymous devices of an address. Nil if the address is unknown, if no limit is set, or for a loopback
    /// address, which belongs to a proxy.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if the address reached its limit less than a minute ago.
    func anonymousQuota(of address: NetworkAddress?) throws(Refusal) -> AddressQuota? {
        guard let anonymousDevices, let address, !address.isLoopback else { return nil }
        let now = ticks.now()
        let isFull = fullAddresses.withLock { full in
            guard let until = full[address.owner] else { return false }
            if until <= now { full[address.owner] = nil }
            return until > now
        }
        if isFull { throw anonymousRefusal }
        return AddressQuota(address: address.owner, limit: anonymousDevices)
    }

    /// Returns the refusal of an anonymous device whose address has reached its limit in the store.
    func refuseAnonymousDevice(from address: NetworkAddress?) -> Refusal {
        let now = ticks.now()
        fullAddresses.withLock { full in
            if full.count >= Self.mostFullAddresses { full = full.filter { $0.value > now } }
            guard full.count < Self.mostFullAddresses, let address else { return }
            full[address.owner] = now + Self.fullNanoseconds
        }
        return anonymousRefusal
    }

    private static let mostFullAddresses = 10_000
    private static let fullNanoseconds: Int64 = 60_000_000_000

    private var anonymousRefusal: Refusal {
        anonymousRefused.increment()
        return Refusal(
            .rateLimited, "One address can have up to \(anonymousDevices ?? 0) anonymous devices.",
            retryAfterSeconds: 3600)
    }

    /// Counts a channel that a device opens, or a change of the device's reports. The device is nil if it is not stored yet.
    package func takeRegistration(of device: DeviceSerial?, from address: NetworkAddress?) throws(Refusal) {
        let now = ticks.now()
        if let device { try deviceRegistrations.take(device, at: now) }
        if let address { try addressRegistrations.take(address.owner, at: now) }
    }
}

/// The token buckets of one kind, and the text and the counter of its refusals.
private struct Meter<Key: Hashable & Sendable>: Sendable {
    private final class Shard: Sendable {
        let buckets: Mutex<TokenBuckets<Key>>
        init(_ rate: Rate) { buckets = Mutex(TokenBuckets(rate: rate, capacity: 16_384)) }
    }

    private let shards: [Shard]
    private let rate: Rate?
    private let what: String
    private let refused: Counter

    init(_ rate: Rate?, of subject: String, _ what: String) {
        self.rate = rate
        self.what = what
        shards = rate.map { rate in (0..<16).map { _ in Shard(rate) } } ?? []
        refused = ServerMetric.rateRefusals.counter(subject)
    }

    func take(_ key: Key, at now: Int64) throws(Refusal) {
        guard let rate else { return }
        let shard = shards[Int(UInt(bitPattern: key.hashValue) % UInt(shards.count))]
        guard let wait = shard.buckets.withLock({ $0.take(key, at: now) }) else { return }
        refused.increment()
        throw Refusal(
            .rateLimited, "The rate limit is \(rate.perSecond) \(what) per second, and \(rate.burst) at once; retry later.",
            retryAfterSeconds: Int(wait / 1_000_000_000) + 1)
    }
}
