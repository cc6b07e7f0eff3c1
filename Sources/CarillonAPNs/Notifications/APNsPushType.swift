/// What kind of push a notification is: it decides the topic's suffix, the default priority and the size limit.
///
/// The set is open. A type that this library does not know yet is written as `APNsPushType("sometype", topicSuffix: ".x")`
/// and passes through unchecked.
public struct APNsPushType: Hashable, Sendable, CustomStringConvertible {
    /// The value of the `apns-push-type` header.
    public let description: String
    /// What is appended to the bundle ID to make the topic; nil when the topic cannot be made from the bundle ID.
    public let topicSuffix: String?
    /// The priority that is sent when the notification sets none; nil leaves the header out.
    public let defaultPriority: APNsPriority?
    /// The largest payload that the service takes for one device, in bytes.
    public let payloadLimit: Int

    /// A push type that the library has no name for.
    /// - Parameters:
    ///   - name: the value of the `apns-push-type` header.
    ///   - topicSuffix: what is appended to the bundle ID, with its dot; nil when each notification sets its topic.
    ///   - defaultPriority: what is sent when the notification sets none; nil leaves it to the service.
    ///   - payloadLimit: in bytes.
    public init(
        _ name: String, topicSuffix: String? = "", defaultPriority: APNsPriority? = nil, payloadLimit: Int = 4096
    ) {
        description = name
        self.topicSuffix = topicSuffix
        self.defaultPriority = defaultPriority
        self.payloadLimit = payloadLimit
    }

    private init(known name: String, _ topicSuffix: String?, _ priority: APNsPriority = .immediate, limit: Int = 4096) {
        self.init(name, topicSuffix: topicSuffix, defaultPriority: priority, payloadLimit: limit)
    }

    /// Shows an alert, plays a sound or sets the badge.
    public static let alert = APNsPushType(known: "alert", "")
    /// Wakes the app without the person noticing. The only priority is 5.
    public static let background = APNsPushType(known: "background", "", .considerPower)
    /// A call for an app with PushKit.
    public static let voip = APNsPushType(known: "voip", ".voip", limit: 5120)
    /// The Push to Talk framework.
    public static let pushToTalk = APNsPushType(known: "pushtotalk", ".voip-ptt")
    /// A watchOS complication of an app with PushKit.
    public static let complication = APNsPushType(known: "complication", ".complication")
    /// A File Provider extension.
    public static let fileProvider = APNsPushType(known: "fileprovider", ".pushkit.fileprovider")
    /// Asks for the device's location. Needs a token key; APNs does not accept a certificate for it.
    public static let location = APNsPushType(known: "location", ".location-query")
    /// Starts, updates or ends a Live Activity.
    public static let liveActivity = APNsPushType(known: "liveactivity", ".push-type.liveactivity")
    /// Reloads the app's controls.
    public static let controls = APNsPushType(known: "controls", ".push-type.controls")
    /// Reloads the app's widgets.
    public static let widgets = APNsPushType(known: "widgets", ".push-type.widgets")
    /// Reaches an accessory through its app.
    public static let accessory = APNsPushType(known: "accessory", ".push-type.accessory")
    /// Asks a managed device to contact its server. The topic is the UID of the push certificate.
    public static let mdm = APNsPushType(known: "mdm", nil)

    /// The types that this version has names for.
    public static let known: [APNsPushType] = [
        .alert, .background, .voip, .pushToTalk, .complication, .fileProvider, .location, .liveActivity, .controls,
        .widgets, .accessory, .mdm,
    ]

    /// Types are the same when their header value is.
    public static func == (one: APNsPushType, other: APNsPushType) -> Bool { one.description == other.description }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) { hasher.combine(description) }
}
