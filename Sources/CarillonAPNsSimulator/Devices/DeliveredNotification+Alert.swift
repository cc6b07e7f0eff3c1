import Foundation

extension APNsSimulator.DeliveredNotification {
    private var aps: [String: Any]? {
        let whole = (try? JSONSerialization.jsonObject(with: Data(payload))) as? [String: Any]
        return whole?["aps"] as? [String: Any]
    }

    /// The title of the alert; nil when there is none, or when a key for translation stands in its place.
    public var title: String? { (aps?["alert"] as? [String: Any])?["title"] as? String }

    /// The text of the alert.
    public var body: String? {
        aps?["alert"] as? String ?? (aps?["alert"] as? [String: Any])?["body"] as? String
    }

    /// The number that the app's icon would have; nil when it stays as it is.
    public var badge: Int? { aps?["badge"] as? Int }

    /// Whether anything would be seen or heard.
    public var isVisible: Bool { aps?["alert"] != nil || aps?["badge"] != nil || aps?["sound"] != nil }
}
