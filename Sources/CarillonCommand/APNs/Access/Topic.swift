import CarillonAPNs

/// What `--topic` means: the app's bundle ID, to which the push type adds its suffix. A topic that has the suffix of its
/// push type already is taken as it is.
struct Topic: Hashable, Sendable {
    /// What the `apns-topic` header says.
    let text: String
    /// The app that it belongs to, which broadcasts and channels are named by.
    let bundleID: String

    init(_ text: String, for type: APNsPushType) {
        guard let suffix = type.topicSuffix, !suffix.isEmpty else {
            self.text = text
            bundleID = text
            return
        }
        let isWhole = text.hasSuffix(suffix) && text.utf8.count > suffix.utf8.count
        self.text = isWhole ? text : text + suffix
        bundleID = isWhole ? String(text.dropLast(suffix.count)) : text
    }
}
