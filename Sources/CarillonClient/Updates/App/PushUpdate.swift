import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// An update that the device was given: published once for an audience that it is of.
public struct PushUpdate: Equatable, Sendable {
    /// What it is about.
    public enum Kind: Equatable, Sendable {
        case content(Content)
        /// The meta definitions changed.
        case definitions
        case status(DeviceStatus)
        case popup(Popup)
        /// A kind of the app's own, and its payload: an object as JSON.
        case custom(name: String, payload: Data)
    }

    /// What of the app's content is to be fetched again, or removed. It names objects, and has none in it.
    public enum Content: Hashable, Sendable {
        /// The object, with so many levels of parents above it and of children below it.
        case refresh(object: String, parents: Int, children: Int)
        case remove(object: String)
        case roots
        case infrastructures
        /// Everything.
        case resynchronise
    }

    /// That the server will not be there for a while, or is there again.
    public enum DeviceStatus: Equatable, Sendable {
        /// `from` nil: at once; `until` nil: until it is said.
        case maintenance(from: Date?, until: Date?)
        case over
    }

    /// A dialog for the user.
    public struct Popup: Equatable, Sendable {
        /// How grave it is, in the order in which dialogs are shown.
        public enum Style: String, CaseIterable, Sendable {
            case emergency
            case failure
            case important
            /// Raises no dialog.
            case notification
        }

        public var style: Style
        public var title: String
        public var lines: [String]
        /// What is downloaded with it, and opened by its button.
        public var attachment: Attachment?

        /// Makes a popup, for instance in the tests of an app.
        public init(style: Style, title: String, lines: [String] = [], attachment: Attachment? = nil) {
            self.style = style
            self.title = title
            self.lines = lines
            self.attachment = attachment
        }
    }

    /// What a popup may bring along.
    public enum Attachment: Hashable, Sendable {
        case object(String)
        case document(String)
    }

    /// The server's name for it.
    public var id: String
    /// Which entry into the audience it is for: what an update does is done once for each.
    public var entry: Int
    /// How often the device was given it, from one on.
    public var attempt: Int
    public var kind: Kind
    public var publishedAt: Date

    /// Makes an update, for instance in the tests of an app.
    public init(id: String, entry: Int = 1, attempt: Int = 1, kind: Kind, publishedAt: Date) {
        self.id = id
        self.entry = entry
        self.attempt = attempt
        self.kind = kind
        self.publishedAt = publishedAt
    }
}

/// One effect of an update on the app's content. The app writes its ``name`` down in the transaction that makes the effect, so that a kill
/// between the two cannot make it twice.
public struct UpdateEffect: Hashable, Sendable {
    /// One name for one effect; at most 96 bytes.
    public let name: String

    init(_ key: UpdateKey, _ step: String) { name = "\(key.update)/\(key.entry)/\(step)" }

    /// Makes an effect, for instance in the tests of an app.
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
