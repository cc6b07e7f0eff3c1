import CarillonAPNs
import Foundation

/// A notification with all values that determine its headers, so that a dry run shows exactly the request that is sent.
struct PreparedPush {
    let notification: APNsNotification
    let bundleID: String?
    /// The channel of a broadcast.
    let channel: String?

    /// - Parameter now: The time from which relative times count.
    init(_ options: NotificationOptions, topic: String?, channel: String?, now: Date) throws {
        let topic = topic.map { Topic($0, for: options.type) }
        bundleID = topic?.bundleID
        self.channel = channel
        var notification = try options.notification(now: now)
        if let topic, channel == nil { notification = notification.topic(topic.text) }
        self.notification = notification
    }
}
