import CarillonBasics
import CarillonCore
import CarillonWire

/// A notification of a Matrix server for several devices at once.
struct MatrixNotification {
    struct Device: Equatable {
        var pushkey: String
        /// The notification with this device's entry alone, and nothing else changed.
        var body: [UInt8]
    }

    /// Each push key once, with the first entry that it has.
    let devices: [Device]

    private static let deviceLimit = 100

    init(parsing body: [UInt8]) throws(Refusal) {
        guard let notification = Self.member("notification", in: body[...]),
            let list = Self.member("devices", in: notification), let entries = JSONPlaces.elements(in: list),
            entries.count <= Self.deviceLimit
        else { throw Self.malformed }
        var seen: Set<String> = []
        var devices: [Device] = []
        for entry in entries {
            guard let place = Self.member("pushkey", in: entry),
                case .string(let pushkey)? = JSONValue(parsing: Array(place))
            else { throw Self.malformed }
            guard seen.insert(pushkey.decodingUnreserved).inserted else { continue }
            let own = body[..<list.startIndex] + [UInt8(ascii: "[")] + entry + [UInt8(ascii: "]")] + body[list.endIndex...]
            devices.append(Device(pushkey: pushkey, body: Array(own)))
        }
        self.devices = devices
    }

    /// A name that comes twice could hide entries from this reader that another one sees.
    private static func member(_ name: String, in object: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let found = JSONPlaces.members(in: object)?.filter({ $0.name == name }), found.count == 1 else { return nil }
        return found[0].value
    }

    private static let malformed = Refusal(
        .jsonInvalid, "A Matrix notification has notification.devices[].pushkey, at most \(deviceLimit) of them.")
}
