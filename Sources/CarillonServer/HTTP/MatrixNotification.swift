import CarillonBasics
import CarillonCore
import CarillonWire

/// A notification of a Matrix server for several devices.
struct MatrixNotification {
    struct Device: Equatable {
        /// The token of the device's endpoint; nil if the push key is not an endpoint of this server.
        let token: String?
        /// The push key, in each spelling that occurs in the notification.
        fileprivate(set) var pushkeys: [String]
        /// The device's first element of `devices`, unchanged.
        let entry: ArraySlice<UInt8>
    }

    /// The message for one device.
    enum Message: Equatable {
        /// The notification with the entry of this device only, otherwise unchanged.
        case whole([UInt8])
        /// The notification without the members that would make it too large.
        case shortened([UInt8])
        case tooLarge
    }

    /// The devices, each endpoint once.
    let devices: [Device]
    private let whole: Variant
    private let withoutContent: Variant
    private let least: Variant

    private static let deviceLimit = 100
    /// The members that are kept if the notification is too large even without `content`.
    private static let kept: Set = ["event_id", "room_id", "type", "prio", "counts", devicesName]
    private static let devicesName = "devices"

    /// - Parameter token: Returns the token of an endpoint of this server; nil for any other push key.
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

    /// Removes as little as possible: first the `content` of the event, then all members that a client does not need in order to
    /// fetch the event.
    func message(for device: Device) -> Message {
        if whole.fits(device.entry) { return .whole(whole.text(with: device.entry)) }
        if withoutContent.fits(device.entry) { return .shortened(withoutContent.text(with: device.entry)) }
        return least.fits(device.entry) ? .shortened(least.text(with: device.entry)) : .tooLarge
    }

    /// The device that a push key identifies.
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

    /// Returns nil for a repeated name, because another reader could see other entries than this one.
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

extension MatrixNotification {
    /// The notification with all or some of its members. It is written once for all devices.
    private struct Variant {
        private let beforeEntry: [UInt8]
        private let afterEntry: [UInt8]

        /// - Parameters:
        ///   - before: The text before the array `devices`.
        ///   - after: The text after the array.
        init(before: ArraySlice<UInt8>, after: ArraySlice<UInt8>) {
            beforeEntry = before + [UInt8(ascii: "[")]
            afterEntry = [UInt8(ascii: "]")] + after
        }

        /// - Parameters:
        ///   - members: The members of the object `notification`, which are kept unchanged.
        ///   - before: The text before the object.
        ///   - after: The text after the object.
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
