/// A text in the notification, or a key that the device looks up in its own language.
enum AlertText: Hashable, Sendable {
    case plain(String)
    case localized(key: String, arguments: [String]?)
}

/// The members of a notification's `alert` dictionary.
struct AlertFields: Hashable, Sendable {
    var title: AlertText?
    var subtitle: AlertText?
    var body: AlertText?
    var launchImage: String?
    var action: String?
    var actionKey: String?
    var summaryArgument: String?
    var summaryArgumentCount: Int?

    var isEmpty: Bool { !isNestable && !hasMoreThanTexts }
    /// Whether there is a text for the alert of a Live Activity.
    var isNestable: Bool { title != nil || subtitle != nil || body != nil }
    /// Whether there is a member that the alert of a Live Activity cannot have.
    var hasMoreThanTexts: Bool {
        launchImage != nil || action != nil || actionKey != nil || summaryArgument != nil || summaryArgumentCount != nil
    }
}

/// A sound's name, or the dictionary of a critical alert.
struct SoundFields: Hashable, Sendable {
    var name: String
    var isDictionary = false
    var isCritical = false
    var volume: Double?
}
