import CarillonBasics
import CarillonCore
import CarillonWire

/// A notification of a Matrix server for several devices at once.
struct MatrixNotification {
    struct Device: Equatable {
        var pushkey: String
        /// The device's own element of `devices`, as it was written.
        var entry: ArraySlice<UInt8>
    }

    /// What one device is sent.
    enum Message: Equatable {
        /// The notification with this device's entry alone, and nothing else changed.
        case whole([UInt8])
        /// The same, without what would make it too large.
        case shortened([UInt8])
        case tooLarge
    }

    /// Each push key once, with the first entry that it has.
    let devices: [Device]
    private let body: [UInt8]
    /// The place of the object `notification` in the body.
    private let place: Range<Int>
    private let members: [(name: String, value: ArraySlice<UInt8>)]
    /// The place of the array `devices` in the body.
    private let list: Range<Int>

    private static let deviceLimit = 100
    /// What remains of a notification that is too large even without its `content`.
    private static let kept: Set = ["event_id", "room_id", "type", "prio", "counts", devicesName]
    private static let devicesName = "devices"

    init(parsing body: [UInt8]) throws(Refusal) {
        guard let notification = Self.member("notification", in: body[...]),
            let members = JSONPlaces.members(in: notification), let list = Self.member(Self.devicesName, of: members),
            let entries = JSONPlaces.elements(in: list), entries.count <= Self.deviceLimit
        else { throw Self.malformed }
        var seen: Set<String> = []
        var devices: [Device] = []
        for entry in entries {
            guard let place = Self.member("pushkey", in: entry),
                case .string(let pushkey)? = JSONValue(parsing: Array(place))
            else { throw Self.malformed }
            if seen.insert(pushkey.decodingUnreserved).inserted { devices.append(Device(pushkey: pushkey, entry: entry)) }
        }
        self.devices = devices
        self.body = body
        self.place = notification.startIndex..<notification.endIndex
        self.members = members
        self.list = list.startIndex..<list.endIndex
    }

    /// Removes as little as possible: first the `content` of the event, and then all that no client needs to fetch it.
    func message(for device: Device) -> Message {
        let own = [UInt8(ascii: "[")] + Array(device.entry) + [UInt8(ascii: "]")]
        if body.count - list.count + own.count <= Limits.matrixMessageBytes {
            return .whole(replacing(list, by: own))
        }
        let withoutContent = replacing(place, by: notification(with: own) { $0 != "content" })
        if withoutContent.count <= Limits.matrixMessageBytes { return .shortened(withoutContent) }
        let least = JSONWriter.object { json in
            json.member("notification", text: notification(with: own) { Self.kept.contains($0) })
        }
        return least.count <= Limits.matrixMessageBytes ? .shortened(least) : .tooLarge
    }

    private func replacing(_ place: Range<Int>, by text: [UInt8]) -> [UInt8] {
        var whole = body
        whole.replaceSubrange(place, with: text)
        return whole
    }

    /// The notification with some of its members, as they were written.
    private func notification(with devices: [UInt8], _ isKept: (String) -> Bool) -> [UInt8] {
        JSONWriter.object { json in
            for member in members where isKept(member.name) {
                json.key(untrusted: member.name)
                json.text(member.name == Self.devicesName ? devices : Array(member.value))
            }
        }
    }

    /// A name that comes twice could hide entries from this reader that another one sees.
    private static func member(_ name: String, in object: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        JSONPlaces.members(in: object).flatMap { member(name, of: $0) }
    }

    private static func member(
        _ name: String, of members: [(name: String, value: ArraySlice<UInt8>)]
    ) -> ArraySlice<UInt8>? {
        let found = members.filter { $0.name == name }
        return found.count == 1 ? found[0].value : nil
    }

    private static let malformed = Refusal(
        .jsonInvalid, "A Matrix notification has notification.devices[].pushkey, at most \(deviceLimit) of them.")
}
