/// The purpose of an update. It determines the form of the payload and the processing by a client.
package enum UpdateKind: Hashable, Sendable {
    /// Objects must be fetched again or removed: a ``ContentChange``.
    case content
    /// The meta definitions changed and must be fetched.
    case definitions
    /// A maintenance of the server begins or ends: a ``DeviceStatusChange``.
    case status
    /// A dialog for the user: a ``Popup``.
    case popup
    /// A kind that the app defines. Its name contains a dot.
    case open(String)

    package static let longestNameBytes = 64
    /// The largest number of kinds that a client can announce.
    package static let mostAnnounced = 64

    package init?(_ name: String) {
        switch name {
        case "content": self = .content
        case "definitions": self = .definitions
        case "status": self = .status
        case "popup": self = .popup
        default:
            guard Self.isOpen(name) else { return nil }
            self = .open(name)
        }
    }

    /// Whether a name consists of two or more parts with dots between. Parts contain ASCII letters, digits, `-` and `_`.
    private static func isOpen(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return name.utf8.count <= longestNameBytes && parts.count > 1
            && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(isOpen) }
    }

    private static func isOpen(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    package var name: String {
        switch self {
        case .content: "content"
        case .definitions: "definitions"
        case .status: "status"
        case .popup: "popup"
        case .open(let name): name
        }
    }
}
