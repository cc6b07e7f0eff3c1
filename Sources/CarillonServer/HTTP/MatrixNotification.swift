import CarillonBasics
import CarillonCore
import CarillonWire

/// A notification of a Matrix server for several devices at once.
struct MatrixNotification {
    struct Device: Equatable {
        /// The token of the device's endpoint; nil if the push key is no endpoint of this server.
        let token: String?
        /// The push key, in each of the spellings that it has in the notification.
        fileprivate(set) var pushkeys: [String]
        /// The first of the device's own elements of `devices`, as it was written.
        let entry: ArraySlice<UInt8>
    }

    /// What one device is sent.
    enum Message: Equatable {
        /// The notification with this device's entry alone, and nothing else changed.
        case whole([UInt8])
        /// The same, without what would make it too large.
        case shortened([UInt8])
        case tooLarge
    }

    /// Each endpoint once.
    let devices: [Device]
    private let whole: Variant
    private let withoutContent: Variant
    private let least: Variant

    private static let deviceLimit = 100
    /// What remains of a notification that is too large even without its `content`.
    private static let kept: Set = ["event_id", "room_id", "type", "prio", "counts", devicesName]
    private static let devicesName = "devices"

    /// - Parameter token: Returns the token of an endpoint of this server, and nil for another push key.
    init(parsing body: [UInt8], token: (String) -> String?) throws(Refusal) {
        guard let notification = Self.member("notification", in: body[...]),
            let members = JSONPlaces.members(in: notification), let list = Self.member(Self.devicesName, of: members),
            let entries = JSONPlaces.elements(in: list), entries.count <= Self.deviceLimit
        else { throw Refusal.numberOutOfRange(in: body) ?? Self.malformed }
        devices = try Self.devices(of: entries, token: token)
        let (before, after) = (body[..<notification.startIndex], body[notification.endIndex...])
        whole = Variant(before: body[..<list.startIndex], after: body[list.endIndex...])
        withoutContent = Variant(of: members, before: before, after: after) { $0 != "content" }
        least = Variant(of: members, before: Array(#"{"notification":"#.utf8)[...], after: [UInt8(ascii: "}")]) {
            Self.kept.contains($0)
        }
    }

    /// Removes as little as possible: first the `content` of the event, and then all that no client needs to fetch it.
    func message(for device: Device) -> Message {
        if whole.fits(device.entry) { return .whole(whole.text(with: device.entry)) }
        if withoutContent.fits(device.entry) { return .shortened(withoutContent.text(with: device.entry)) }
        return least.fits(device.entry) ? .shortened(least.text(with: device.entry)) : .tooLarge
    }

    /// The device that a push key stands for.
    private enum Identity: Hashable {
        case endpoint(token: String)
        case other(pushkey: String)
    }

    private static func devices(
        of entries: [ArraySlice<UInt8>], token: (String) -> String?
    ) throws(Refusal) -> [Device] {
        var places: [Identity: Int] = [:]
        var devices: [Device] = []
        for entry in entries {
            guard let place = member("pushkey", in: entry), case .string(let pushkey)? = JSONValue(parsing: Array(place))
            else { throw malformed }
            let found = token(pushkey)
            let identity = found.map { Identity.endpoint(token: $0) } ?? .other(pushkey: pushkey)
            if let place = places[identity] {
                if !devices[place].pushkeys.contains(pushkey) { devices[place].pushkeys.append(pushkey) }
            } else {
                places[identity] = devices.count
                devices.append(Device(token: found, pushkeys: [pushkey], entry: entry))
            }
        }
        return devices
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
        .jsonInvalid,
        "A Matrix notification must have \"notification.devices[].pushkey\", with at most \(deviceLimit) devices.")
}

extension MatrixNotification {
    /// The notification, with all or some of its members. It is written once, however many devices there are.
    private struct Variant {
        private let beforeEntry: [UInt8]
        private let afterEntry: [UInt8]

        /// - Parameters:
        ///   - before: What comes before the array `devices`.
        ///   - after: What comes after the array.
        init(before: ArraySlice<UInt8>, after: ArraySlice<UInt8>) {
            beforeEntry = before + [UInt8(ascii: "[")]
            afterEntry = [UInt8(ascii: "]")] + after
        }

        /// - Parameters:
        ///   - members: The members of the object `notification`. They are kept as they were written.
        ///   - before: What comes before the object.
        ///   - after: What comes after the object.
        init(
            of members: [(name: String, value: ArraySlice<UInt8>)], before: ArraySlice<UInt8>, after: ArraySlice<UInt8>,
            isKept: (String) -> Bool
        ) {
            var place = 0
            let notification = JSONWriter.object { json in
                for member in members where isKept(member.name) {
                    json.key(untrusted: member.name)
                    if member.name == MatrixNotification.devicesName {
                        place = json.bytes.count
                    } else {
                        json.text(Array(member.value))
                    }
                }
            }
            self.init(before: before + notification[..<place], after: notification[place...] + after)
        }

        func fits(_ entry: ArraySlice<UInt8>) -> Bool {
            beforeEntry.count + entry.count + afterEntry.count <= Limits.matrixMessageBytes
        }

        func text(with entry: ArraySlice<UInt8>) -> [UInt8] { beforeEntry + entry + afterEntry }
    }
}
