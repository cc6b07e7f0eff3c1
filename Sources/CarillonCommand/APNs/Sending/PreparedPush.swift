import CarillonAPNs
import Foundation

/// A notification with everything said that its headers depend on, so that what a dry run shows is what is sent.
struct PreparedPush {
    let notification: APNsNotification
    let bundleID: String?
    /// Of a broadcast.
    let channel: String?

    /// - Parameter now: what relative times count from.
    init(_ options: NotificationOptions, topic: String?, channel: String?, now: Date) throws {
        let topic = topic.map { Topic($0, for: options.type) }
        bundleID = topic?.bundleID
        self.channel = channel
        var notification = try options.notification(now: now)
        if let topic, channel == nil { notification = notification.topic(topic.text) }
        self.notification = notification
    }
}
