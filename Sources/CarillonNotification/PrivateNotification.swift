import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What a subscription on items shows, which the vendor's service could not read: its placeholders are filled in.
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

    /// The server's name for the subscription: 32 hexadecimal digits.
    public var subscriptionID: String { fired.subscription.description }
    /// The app's own name for it.
    public var key: String? { fired.key }
    /// The item whose update fired.
    public var item: String { fired.item }
    /// When the item was updated, by the server's clock.
    public var updatedAt: Date { Date(timeIntervalSince1970: Double(fired.at) / 1000) }

    /// The title.
    public var title: String? { text("title") }
    /// The text below the title.
    public var subtitle: String? { text("subtitle") }
    /// The text.
    public var body: String? { text("body") }
    /// The category, whose actions the app has.
    public var category: String? { text("category") }
    /// The group of notifications that it stands in.
    public var thread: String? { text("thread") }
    /// A sound's name; `default` is the system's.
    public var sound: String? {
        if case .string(let name)? = fired.notification["sound"]?["name"] { name } else { text("sound") }
    }

    /// All of it, as JSON in the members of the format.
    public var jsonText: String { String(decoding: fired.notification.bytes, as: UTF8.self) }

    private func text(_ name: String) -> String? {
        if case .string(let text)? = fired.notification[name] { text } else { nil }
    }
}
