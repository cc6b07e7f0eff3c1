import Foundation

extension APNsSimulator.DeliveredNotification {
    private var aps: [String: Any]? {
        let whole = (try? JSONSerialization.jsonObject(with: Data(payload))) as? [String: Any]
        return whole?["aps"] as? [String: Any]
    }

    /// The title of the alert; nil if the alert has no title, or a localisation key instead.
    public var title: String? { (aps?["alert"] as? [String: Any])?["title"] as? String }

    /// The text of the alert.
    public var body: String? {
        aps?["alert"] as? String ?? (aps?["alert"] as? [String: Any])?["body"] as? String
    }

    /// The new number on the app's icon; nil if the number does not change.
    public var badge: Int? { aps?["badge"] as? Int }

    /// Whether the notification has an alert, a badge or a sound.
    public var isVisible: Bool { aps?["alert"] != nil || aps?["badge"] != nil || aps?["sound"] != nil }
}
