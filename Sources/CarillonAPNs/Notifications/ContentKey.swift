/// The members of `aps`, and the push types that ignore them.
///
/// The members are those of Apple's page "Generating a remote notification". Those of Live Activities are on the page "Starting and
/// updating Live Activities with ActivityKit push notifications".
enum ContentKey: String, CaseIterable {
    case alert, badge, sound, category
    case threadID = "thread-id"
    case mutableContent = "mutable-content"
    case targetContentID = "target-content-id"
    case interruptionLevel = "interruption-level"
    case relevanceScore = "relevance-score"
    case filterCriteria = "filter-criteria"
    case urlArguments = "url-args"
    case contentAvailable = "content-available"
    case contentChanged = "content-changed"
    case timestamp, event, attributes
    case contentState = "content-state"
    case staleDate = "stale-date"
    case dismissalDate = "dismissal-date"
    case attributesType = "attributes-type"
    case inputPushToken = "input-push-token"
    case inputPushChannel = "input-push-channel"

    static let all = Set(allCases)
    /// The content of the notification and its presentation.
    private static let display: Set<ContentKey> = [
        .alert, .badge, .sound, .category, .threadID, .mutableContent, .targetContentID, .interruptionLevel, .relevanceScore,
        .filterCriteria, .urlArguments,
    ]
    private static let activity: Set<ContentKey> = [
        .timestamp, .event, .attributes, .contentState, .staleDate, .dismissalDate, .attributesType, .inputPushToken,
        .inputPushChannel,
    ]

    private static let ignoredByAlert = activity.union([.contentChanged])
    /// "Pushing background updates to your App": a background push has no alert, sound or badge. The app receives the whole
    /// payload and can read the other members.
    private static let ignoredByBackground = activity.union([.alert, .badge, .sound])
    /// The alert of a Live Activity has a sound of its own.
    private static let ignoredByActivity = display.subtracting([.alert, .sound, .relevanceScore])
        .union([.contentAvailable, .contentChanged])
    /// "Updating widgets with WidgetKit push notifications", and the same page for controls: only `content-changed`.
    private static let ignoredByReload = display.union(activity).union([.contentAvailable])
    /// "Using push notifications to signal changes": the container and the domain, beside an empty `aps`.
    private static let ignoredByFileProvider = display.union(activity).union([.contentAvailable, .contentChanged])

    /// Returns the members that are ignored in a push of the type. With `voip`, `pushtotalk`, `complication` and `location`,
    /// the app or its extension receives the whole payload and can read all members. A type that the library has no name for
    /// can have any member.
    static func ignored(by type: APNsPushType) -> Set<ContentKey> {
        switch type {
        case .alert: ignoredByAlert
        case .background: ignoredByBackground
        case .liveActivity: ignoredByActivity
        case .widgets, .controls: ignoredByReload
        case .fileProvider: ignoredByFileProvider
        case .mdm: all
        default: []
        }
    }

    /// Returns the same members in the order of their names, so that an error message is the same each time.
    static func ignoredInOrder(by type: APNsPushType) -> [ContentKey] { orders[type] ?? [] }

    private static let orders: [APNsPushType: [ContentKey]] = Dictionary(
        uniqueKeysWithValues: APNsPushType.known.map { type in
            (type, ignored(by: type).sorted { $0.rawValue < $1.rawValue })
        })
}
