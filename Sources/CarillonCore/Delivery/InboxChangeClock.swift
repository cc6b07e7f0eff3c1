import Synchronization

/// Tracks whether the inbox of a device can have changed since a moment.
///
/// A caller that reads an inbox takes a ``Moment`` before the read, and compares it after the read. A change is noted when it is
/// in the store, before the change leaves the queue and before a session is notified. So a read that began after the note has the
/// change, and a read that began earlier is found to be outdated. Devices share places: the result can be true without a change,
/// and is never false after one. The clock has 262,144 places, in 2 MiB, so that false results are rare when many devices connect
/// at once.
package final class InboxChangeClock: Sendable {
    package struct Moment: Sendable {
        fileprivate var number: UInt64
    }

    private final class Part: Sendable {
        /// The number of the latest change, by place.
        let latest = Mutex([UInt64](repeating: 0, count: InboxChangeClock.placesOfPart))
    }

    private static let partCount = 64
    private static let placesOfPart = 4096
    /// The logarithm of the number of all places.
    private static let placeBits = UInt64((partCount * placesOfPart).trailingZeroBitCount)

    private let changeCount = Atomic<UInt64>(0)
    /// The number of the latest change of all inboxes.
    private let all = Atomic<UInt64>(0)
    /// The number of the latest change of all devices of an app, by place.
    private let apps = Mutex([UInt64](repeating: 0, count: InboxChangeClock.placesOfPart))
    private let parts = (0..<InboxChangeClock.partCount).map { _ in Part() }

    package init() {}

    package func now() -> Moment { Moment(number: changeCount.load(ordering: .acquiring)) }

    /// Notes that an envelope of the device's inbox was committed or withdrawn, or that its sessions were ended.
    package func note(_ device: DeviceSerial) {
        let number = changeCount.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        let (part, place) = location(of: device)
        part.latest.withLock { $0[place] = max($0[place], number) }
    }

    /// Notes a withdrawal that can concern the inbox of each device of the app.
    package func note(allOf app: AppSerial) {
        let number = changeCount.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        apps.withLock { $0[Self.place(of: app)] = max($0[Self.place(of: app)], number) }
    }

    /// Notes that inboxes can have changed without a note, because another home had them.
    package func noteAll() {
        let number = changeCount.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        _ = all.max(number, ordering: .acquiringAndReleasing)
    }

    package func mayHaveChanged(allOf app: AppSerial, since moment: Moment) -> Bool {
        apps.withLock { $0[Self.place(of: app)] } > moment.number
    }

    package func mayHaveChanged(_ device: DeviceSerial, since moment: Moment) -> Bool {
        if all.load(ordering: .acquiring) > moment.number { return true }
        let (part, place) = location(of: device)
        return part.latest.withLock { $0[place] } > moment.number
    }

    private func location(of device: DeviceSerial) -> (Part, Int) {
        let (place, part) = Self.place(of: device).quotientAndRemainder(dividingBy: Self.partCount)
        return (parts[part], place)
    }

    private static func place(of app: AppSerial) -> Int {
        Int(UInt64(bitPattern: app.rawValue) % UInt64(placesOfPart))
    }

    /// Devices that were registered one after the other have different places.
    private static func place(of device: DeviceSerial) -> Int {
        let serial = UInt64(bitPattern: device.rawValue)
        // The last bits of these serials are the shard, which can be the same for all devices of a home.
        guard device.rawValue < Shard.firstWithShard else {
            return Int((serial &* 0x9E37_79B9_7F4A_7C15) >> (64 - placeBits))
        }
        return Int(serial & (1 << placeBits - 1))
    }
}
