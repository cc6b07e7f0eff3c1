import NIOCore

/// A complete request to the simulated service.
struct Submission {
    /// The services of a port. Each of the real services has its own host.
    struct Services: OptionSet, Hashable, Sendable {
        var rawValue: UInt8
        /// Pushes to devices and broadcasts.
        static let push = Services(rawValue: 1)
        /// Broadcast channels.
        static let management = Services(rawValue: 2)
    }

    var environment: Environment
    var services: Services
    var method: String
    var path: String
    var fields: RequestFields
    /// The body, or its beginning if it is larger than any limit.
    var payload: ByteBuffer
    var payloadBytes: Int
}

/// The target of a path.
enum Target {
    case device(token: Substring)
    case broadcast(bundleID: String)
    case channels(bundleID: String)
    case allChannels(bundleID: String)

    init?(path: String, services: Submission.Services) {
        if services.contains(.push), path.hasPrefix("/3/device") {
            let rest = path.dropFirst("/3/device".count)
            guard rest.isEmpty || rest.first == "/" else { return nil }
            self = .device(token: rest.dropFirst())
            return
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard let last = parts.last, parts.count >= 4 else { return nil }
        if services.contains(.push), parts.elementsEqual(["4", "broadcasts", "apps", last]) {
            self = .broadcast(bundleID: String(last))
            return
        }
        let bundleID = parts[parts.startIndex + 2]
        guard services.contains(.management), parts.count == 4, parts.first == "1", parts[parts.startIndex + 1] == "apps"
        else { return nil }
        switch last {
        case "channels": self = .channels(bundleID: String(bundleID))
        case "all-channels": self = .allChannels(bundleID: String(bundleID))
        default: return nil
        }
    }
}
