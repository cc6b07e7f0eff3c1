import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An audience update that the device received.
public struct PushUpdate: Equatable, Sendable {
    /// The kind of an update, with its payload.
    public enum Kind: Equatable, Sendable {
        case content(Content)
        /// The meta definitions changed.
        case definitions
        case status(DeviceStatus)
        case popup(Popup)
        /// A kind that the app defines, and its payload: a JSON object.
        case custom(name: String, payload: Data)
    }

    /// The part of the app's content that must be fetched again, or removed. It contains the names of objects, not the objects.
    public enum Content: Hashable, Sendable {
        /// The object, with the given number of levels of parents above it and of children below it.
        case refresh(object: String, parents: Int, children: Int)
        case remove(object: String)
        case roots
        case infrastructures
        /// Everything.
        case resynchronise
    }

    /// Whether the server is unavailable for some time, or available again.
    public enum DeviceStatus: Equatable, Sendable {
        /// If `from` is nil, the maintenance begins at once. If `until` is nil, it lasts until another status arrives.
        case maintenance(from: Date?, until: Date?)
        case over
    }

    /// A dialog for the user.
    public struct Popup: Equatable, Sendable {
        /// The severity, in the order in which dialogs are shown.
        public enum Style: String, CaseIterable, Sendable {
            case emergency
            case failure
            case important
            /// Shows no dialog.
            case notification
        }

        public var style: Style
        public var title: String
        public var lines: [String]
        /// The attachment that is downloaded with the popup, and opened with its button; nil if the popup has no attachment.
        public var attachment: Attachment?

        /// Makes a popup, for example in the tests of an app.
        public init(style: Style, title: String, lines: [String] = [], attachment: Attachment? = nil) {
            self.style = style
            self.title = title
            self.lines = lines
            self.attachment = attachment
        }
    }

    /// The attachment of a popup.
    public enum Attachment: Hashable, Sendable {
        case object(String)
        case document(String)
    }

    /// The id of the update on the server.
    public var id: String
    /// The number of the device's entry into the audience. The effect of an update is made once for each entry.
    public var entry: Int
    /// The number of the delivery to the device, starting with one.
    public var attempt: Int
    public var kind: Kind
    public var publishedAt: Date

    /// Makes an update, for example in the tests of an app.
    public init(id: String, entry: Int = 1, attempt: Int = 1, kind: Kind, publishedAt: Date) {
        self.id = id
        self.entry = entry
        self.attempt = attempt
        self.kind = kind
        self.publishedAt = publishedAt
    }
}

/// One effect of an update on the app's content. The app stores its ``name`` in the transaction that makes the effect, so that an
/// end of the process cannot cause a second effect.
public struct UpdateEffect: Hashable, Sendable {
    /// The name of the effect, up to 96 bytes.
    public let name: String

    init(_ key: UpdateKey, _ step: String) { name = "\(key.update)/\(key.entry)/\(step)" }

    /// Makes an effect, for example in the tests of an app.
    public init(name: String) { self.name = name }
}

/// An update and an entry into its audience.
struct UpdateKey: Hashable, Sendable {
    var update: String
    var entry: Int
}

extension PushUpdate {
    var key: UpdateKey { UpdateKey(update: id, entry: entry) }
}

extension PushUpdate.Content {
    init(_ change: ContentChange) {
        switch change {
        case .refresh(let object, let parents, let children):
            self = .refresh(object: object, parents: parents, children: children)
        case .remove(let object): self = .remove(object: object)
        case .roots: self = .roots
        case .infrastructures: self = .infrastructures
        case .resync: self = .resynchronise
        }
    }
}

extension PushUpdate.DeviceStatus {
    fileprivate init(_ change: DeviceStatusChange) {
        switch change {
        case .over: self = .over
        case .maintenance(let from, let until):
            self = .maintenance(from: from.map(Date.init(milliseconds:)), until: until.map(Date.init(milliseconds:)))
        }
    }
}

extension PushUpdate.Popup {
    fileprivate init(_ popup: Popup) {
        self.init(
            style: Style(rawValue: popup.style.rawValue) ?? .notification, title: popup.title, lines: popup.lines,
            attachment: popup.attachment.map { attachment in
                switch attachment {
                case .object(let name): .object(name)
                case .document(let name): .document(name)
                }
            })
    }
}

extension PushUpdate.Kind {
    init(_ payload: UpdatePayload, _ kind: UpdateKind) {
        switch payload {
        case .content(let change): self = .content(.init(change))
        case .definitions: self = .definitions
        case .status(let change): self = .status(.init(change))
        case .popup(let popup): self = .popup(.init(popup))
        case .open(let json): self = .custom(name: kind.name, payload: Data(json.bytes))
        }
    }
}

extension Date {
    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }

    var milliseconds: Int64 { Int64((timeIntervalSince1970 * 1000).rounded()) }
}
