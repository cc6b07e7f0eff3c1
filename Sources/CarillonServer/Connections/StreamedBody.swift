import NIOHTTP1

/// A body that is given to the routes as it comes.
enum StreamedBody {
    /// Updates of items, which come when something happens.
    case updates
    /// A file, which is there.
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

    /// How long it may take to bring what came to the disk, when all of it is there.
    static let storingSeconds = 300

    /// So much of it must come in each period; less is a peer that only holds its place.
    var minimumBytes: Int {
        switch self {
        case .updates: 0
        case .file: 32_768
        }
    }
}
