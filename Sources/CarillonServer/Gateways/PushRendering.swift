import CarillonAPNs
import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Converts pushes to notifications for Apple's push service.
///
/// A notification does not contain the message identifiers of the sender or the server. It identifies messages and pushes by
/// keyed hashes, and by hashes that the device can compute.
struct PushRendering: Sendable {
    static let largestPayload = 4096

    private let key: SymmetricKey
    private let wake = APNsNotification.background.collapseID("carillon").custom("carillon", ["kind": "wake"])

    /// - Parameter key: The server's key for the hashes.
    init(key: SymmetricKey) { self.key = key }

    func notification(of push: LeasedPush, _ text: AlertText?) -> APNsNotification {
        var notification: APNsNotification
        switch push.content {
        case .wake: notification = wake
        case .alert(let envelope, let topic, let badge) where envelope.kind.number == .fired:
            notification = fired(envelope, topic, text, badge, isShortened: push.isShortened)
        case .alert(let envelope, let topic, let badge):
            notification = alert(for: envelope, text, badge)
                .collapseID(collapseID(of: envelope, topic))
                .priority(envelope.urgency == .high ? .immediate : .considerPower)
        }
        notification = notification.id(UUID(push.id))
        // Apple's service stores a notification for at most thirty days.
        return notification.expiration(.at(Date(timeIntervalSince1970: TimeInterval(push.expiresAt.milliseconds / 1000))))
    }

    /// Returns the largest size of a payload that contains these texts and a message of 2400 bytes of plain text (`aes128gcm`,
    /// RFC 8188: a header of 86 bytes, a delimiter and a tag of 16 bytes).
    static func sizeOfLargest(with text: AlertText) -> Int {
        let fields = PushFields(
            kind: "alert", message: MessageHash.text(of: ""), channel: ChannelID(Bytes16(high: 0, low: 0)).description,
            body: Base64URL.encode([UInt8](repeating: 0, count: 2400 + 103)), coding: "aes128gcm", encryption: nil,
            cryptoKey: nil)
        return text.notification(badge: .max).custom("carillon", fields).jsonString.utf8.count
    }

    /// The message is included if it is encrypted for the app and fits into the payload.
    private func alert(for envelope: Envelope, _ text: AlertText?, _ badge: Int) -> APNsNotification {
        let bare = text?.notification(badge: badge) ?? APNsNotification.alert().mutableContent()
        let id = MessageHash.text(of: envelope.id.description)
        let fields = PushFields(
            kind: "alert", message: id, channel: envelope.channelID?.description, body: nil, coding: nil, encryption: nil,
            cryptoKey: nil)
        guard case .message(let content) = envelope.kind, let coding = content.coding, coding.isEncrypted else {
            return bare.custom("carillon", fields)
        }
        return Self.carrying(content.body, coding, bare, fields)
    }

    /// Adds the encrypted content if it fits into the payload.
    static func carrying(
        _ body: [UInt8], _ coding: ContentCoding, _ bare: APNsNotification, _ fields: PushFields
    ) -> APNsNotification {
        var whole = fields
        whole.body = Base64URL.encode(body)
        whole.coding = coding.name.rawValue
        whole.encryption = coding.encryption
        whole.cryptoKey = coding.cryptoKey
        let full = bare.custom("carillon", whole)
        return full.jsonString.utf8.count <= largestPayload ? full : bare.custom("carillon", fields)
    }

    /// Returns the same value for all messages of a topic, so that the device shows only the newest. Any other message has its
    /// own value.
    func collapseID(of envelope: Envelope, _ topic: String?) -> String {
        var hash = HMAC<SHA256>(key: key)
        if let topic {
            hash.update(data: Array("topic \(envelope.origin.kind.rawValue) \(envelope.origin.serial) \(topic)".utf8))
        } else {
            hash.update(data: Array("message \(envelope.id)".utf8))
        }
        return Base64URL.encode(Array(hash.finalize()).prefix(24))
    }
}

/// The custom fields of a push, beside Apple's own members.
struct PushFields: Codable, Sendable {
    var kind: String
    /// See ``MessageHash``.
    var message: String
    var channel: String?
    /// The encrypted content, in base64url.
    var body: String?
    var coding: String?
    var encryption: String?
    var cryptoKey: String?
}

extension Envelope {
    fileprivate var channelID: ChannelID? { origin.kind == .channel ? ChannelID(origin.id) : nil }
}

extension Bytes16 {
    /// The text of an `apns-id`, in Apple's form.
    var uuidText: String { UUID(self).uuidString.lowercased() }
}

extension UUID {
    fileprivate init(_ bytes: Bytes16) {
        let (high, low) = (bytes.high, bytes.low)
        func byte(_ word: UInt64, _ place: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: word >> (56 - 8 * place)) }
        self.init(
            uuid: (
                byte(high, 0), byte(high, 1), byte(high, 2), byte(high, 3), byte(high, 4), byte(high, 5), byte(high, 6),
                byte(high, 7), byte(low, 0), byte(low, 1), byte(low, 2), byte(low, 3), byte(low, 4), byte(low, 5),
                byte(low, 6), byte(low, 7)
            ))
    }
}
