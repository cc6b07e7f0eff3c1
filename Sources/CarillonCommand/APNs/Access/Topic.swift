import CarillonAPNs

/// The value of `--topic`: the app's bundle ID, to which the push type adds its suffix. A topic that already has the suffix of
/// its push type is used unchanged.
struct Topic: Hashable, Sendable {
    /// The value of the `apns-topic` header.
    let text: String
    /// The bundle ID of the app, which identifies it in requests for broadcasts and channels.
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
