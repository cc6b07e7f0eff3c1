import NIOHTTP1

/// The kinds of bodies that the routes receive in parts.
enum StreamedBody {
    /// Item updates, which the client sends as they occur.
    case updates
    /// A file, which the client has completely.
    case file

    init?(of head: HTTPRequestHead) {
        let path = head.uri.prefix { $0 != "?" }
        switch head.method {
        case .POST where path == ItemRoutes.streamPath: self = .updates
        case .POST where path == AttachmentRoutes.path, .PATCH where path.hasPrefix(AttachmentRoutes.path + "/"):
            self = .file
        default: return nil
        }
    }

    /// The longest time to store the received data on disk after the body is complete.
    static let storingSeconds = 300

    /// The bytes that must arrive in each period. A slower peer is treated as idle.
    var minimumBytes: Int {
        switch self {
        case .updates: 0
        case .file: 32_768
        }
    }
}
