/// A push type, with the rules that depend on it.
enum PushType: String, CaseIterable, Sendable {
    case alert, background, voip, pushtotalk, complication, fileprovider, location, liveactivity, controls, widgets
    case accessory, mdm

    /// The text after the bundle identifier in the APNs topic.
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

    /// Returns the bundle identifier in an APNs topic of this type; nil for an APNs topic of another type.
    func bundleID(of topic: String) -> String? {
        let suffix = topicSuffix
        if suffix.isEmpty { return Self.suffix(of: topic) == nil ? topic : nil }
        guard topic.hasSuffix(suffix), topic.utf8.count > suffix.utf8.count else { return nil }
        return String(topic.dropLast(suffix.count))
    }

    private static let suffixes = allCases.map(\.topicSuffix).filter { !$0.isEmpty }

    /// Returns the suffix of an APNs topic of any type.
    static func suffix(of topic: String) -> String? { suffixes.first { topic.hasSuffix($0) } }

    /// Returns an APNs topic without its suffix.
    static func bundleID(of topic: String) -> String {
        suffix(of: topic).map { String(topic.dropLast($0.count)) } ?? topic
    }
}
