import CarillonAPNs
import Foundation

/// A notification with everything said that its headers depend on, so that what a dry run shows is what is sent.
struct PreparedPush {
    let notification: APNsNotification
    let headers: [(name: String, value: String)]
    let bundleID: String?

    /// - Parameter now: what relative times count from.
    init(_ options: NotificationOptions, topic: String?, channel: String?, now: Date) throws {
        let type = options.type
        let topic = topic.map { Topic($0, for: type) }
        bundleID = topic?.bundleID
        var notification = try options.notification(now: now)
        var headers: [(name: String, value: String)] = []
        if let channel {
            headers.append(("apns-channel-id", channel))
        } else if let topic {
            notification = notification.topic(topic.text)
            headers.append(("apns-topic", topic.text))
        }
        headers.append(("apns-push-type", type.description))
        if let priority = options.priority ?? type.defaultPriority?.rawValue {
            notification = notification.priority(APNsPriority(rawValue: priority))
            headers.append(("apns-priority", String(priority)))
        }
        if let expiration = options.expiration(now: now) ?? (channel == nil ? nil : .immediately) {
            notification = notification.expiration(expiration)
            headers.append(("apns-expiration", String(expiration.seconds)))
        }
        if let collapseID = options.collapseId { headers.append(("apns-collapse-id", collapseID)) }
        self.notification = notification
        self.headers = headers
    }
}
