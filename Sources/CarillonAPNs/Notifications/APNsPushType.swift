/// The kind of a push. It determines the suffix of the APNs topic, the default priority and the size limit.
///
/// The set is open. Write a type that this library does not define as `APNsPushType("sometype", topicSuffix: ".x")`; it is
/// not checked.
public struct APNsPushType: Hashable, Sendable, CustomStringConvertible {
    /// The value of the `apns-push-type` header.
    public let description: String
    /// The text that is appended to the bundle ID to make the APNs topic; nil if the APNs topic cannot be made from the
    /// bundle ID.
    public let topicSuffix: String?
    /// The priority of a notification that sets none; nil leaves the header out.
    public let defaultPriority: APNsPriority?
    /// The largest payload that APNs accepts for one device, in bytes.
    public let payloadLimit: Int

    /// Makes a push type that the library has no name for.
    /// - Parameters:
    ///   - name: the value of the `apns-push-type` header.
    ///   - topicSuffix: the text that is appended to the bundle ID, with its dot; nil if each notification sets its APNs
    ///     topic.
    ///   - defaultPriority: the priority of a notification that sets none; nil leaves the choice to APNs.
    ///   - payloadLimit: the largest payload, in bytes.
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
    /// Wakes the app without any sign to the user. The only valid priority is 5.
    public static let background = APNsPushType(known: "background", "", .considerPower)
    /// Announces a call to an app with PushKit.
    public static let voip = APNsPushType(known: "voip", ".voip", limit: 5120)
    /// Notifies an app with the Push to Talk framework.
    public static let pushToTalk = APNsPushType(known: "pushtotalk", ".voip-ptt")
    /// Updates a watchOS complication of an app with PushKit.
    public static let complication = APNsPushType(known: "complication", ".complication")
    /// Notifies a File Provider extension.
    public static let fileProvider = APNsPushType(known: "fileprovider", ".pushkit.fileprovider")
    /// Requests the device's location. This needs a signing key; APNs does not accept a certificate for it.
    public static let location = APNsPushType(known: "location", ".location-query")
    /// Starts, updates or ends a Live Activity.
    public static let liveActivity = APNsPushType(known: "liveactivity", ".push-type.liveactivity")
    /// Reloads the app's controls.
    public static let controls = APNsPushType(known: "controls", ".push-type.controls")
    /// Reloads the app's widgets.
    public static let widgets = APNsPushType(known: "widgets", ".push-type.widgets")
    /// Sends data to an accessory through its app.
    public static let accessory = APNsPushType(known: "accessory", ".push-type.accessory")
    /// Requests that a managed device contacts its server. The APNs topic is the UID of the push certificate.
    public static let mdm = APNsPushType(known: "mdm", nil)

    /// The types that this version has names for.
    public static let known: [APNsPushType] = [
        .alert, .background, .voip, .pushToTalk, .complication, .fileProvider, .location, .liveActivity, .controls,
        .widgets, .accessory, .mdm,
    ]

    /// Two types are equal if their header values are.
    public static func == (one: APNsPushType, other: APNsPushType) -> Bool { one.description == other.description }

    /// Hashes the header value.
    public func hash(into hasher: inout Hasher) { hasher.combine(description) }
}
