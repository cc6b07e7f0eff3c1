/// A push type, and what follows from it.
enum PushType: String, CaseIterable, Sendable {
    case alert, background, voip, pushtotalk, complication, fileprovider, location, liveactivity, controls, widgets
    case accessory, mdm

    /// What the topic has after the bundle identifier.
    var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .voip: ".voip"
        case .pushtotalk: ".voip-ptt"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .location: ".location-query"
        case .liveactivity: ".push-type.liveactivity"
        case .controls: ".push-type.controls"
        case .widgets: ".push-type.widgets"
        case .accessory: ".push-type.accessory"
        }
    }

    var payloadLimit: Int { self == .voip ? 5120 : 4096 }

    func allows(priority: Int) -> Bool {
        switch self {
        case .background: priority != 10
        case .liveactivity: priority != 1
        default: true
        }
    }

    /// The bundle identifier in a topic that belongs to this type; nil when it belongs to another.
    func bundleID(of topic: String) -> String? {
        let suffix = topicSuffix
        if suffix.isEmpty { return Self.suffix(of: topic) == nil ? topic : nil }
        guard topic.hasSuffix(suffix), topic.utf8.count > suffix.utf8.count else { return nil }
        return String(topic.dropLast(suffix.count))
    }

    private static let suffixes = allCases.map(\.topicSuffix).filter { !$0.isEmpty }

    /// The suffix that a topic has, whatever the type.
    static func suffix(of topic: String) -> String? { suffixes.first { topic.hasSuffix($0) } }

    /// A topic without its suffix.
    static func bundleID(of topic: String) -> String {
        suffix(of: topic).map { String(topic.dropLast($0.count)) } ?? topic
    }
}
