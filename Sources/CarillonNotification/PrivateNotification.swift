import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The private notification of an item subscription, with its placeholders filled in. It was sent encrypted, so that Apple's
/// push service could not read it.
///
/// ```swift
/// if let shown = reader.privateNotification(in: request.content.userInfo) {
///     content.title = shown.title ?? content.title
///     content.body = shown.body ?? content.body
///     reader.noteShown(shown)
/// }
/// ```
public struct PrivateNotification: Sendable {
    let hash: String
    private let fired: FiredNotification

    init(hash: String, fired: FiredNotification) {
        self.hash = hash
        self.fired = fired
    }

    /// The server's ID of the item subscription: 32 hexadecimal digits.
    public var subscriptionID: String { fired.subscription.description }
    /// The app's own key of the item subscription; nil if it has none.
    public var key: String? { fired.key }
    /// The item whose update fired the subscription.
    public var item: String { fired.item }
    /// The time of the item update, by the server's clock.
    public var updatedAt: Date { Date(timeIntervalSince1970: Double(fired.at) / 1000) }

    /// The title of the notification; nil if the notification has no title.
    public var title: String? { text("title") }
    /// The text below the title; nil if the notification has no subtitle.
    public var subtitle: String? { text("subtitle") }
    /// The text of the notification; nil if the notification has no text.
    public var body: String? { text("body") }
    /// The notification category that the app registered with its actions; nil if the notification has no category.
    public var category: String? { text("category") }
    /// The thread that groups this notification with others; nil if the notification has no thread.
    public var thread: String? { text("thread") }
    /// The name of a sound; `default` is the system's sound.
    public var sound: String? {
        if case .string(let name)? = fired.notification["sound"]?["name"] { name } else { text("sound") }
    }

    /// The whole notification as JSON, with the members of the notification format.
    public var jsonText: String { String(decoding: fired.notification.bytes, as: UTF8.self) }

    private func text(_ name: String) -> String? {
        if case .string(let text)? = fired.notification[name] { text } else { nil }
    }
}
